// Runs something one at a time: asked for while it runs, it runs once more after.

export type SingleFlight = {
  readonly ask: () => void;
  /** Runs no more. Resolves when what runs is over. */
  readonly stop: () => Promise<void>;
};

/** `work` must not throw. */
export function singleFlight(work: () => Promise<void>): SingleFlight {
  let asked = false;
  let stopped = false;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (asked && !stopped) {
      asked = false;
      await work();
    }
    running = undefined;
  }

  return {
    ask() {
      asked = true;
      running ??= run();
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}
