// The turns of this process that were given before anybody had a place for them.

/** How late one may be used: the rate is exceeded by no more than the calls of that time. */
const VALID_MS = 100;

/** Milliseconds of the clock at which a turn is, or was a moment ago. */
export type TurnAt = number;

export type TurnsAhead = {
  readonly count: () => number;
  readonly take: () => TurnAt | undefined;
  /** Asks for more, and keeps what comes. False where all were forgotten meanwhile: turns of that question are void. */
  readonly asking: () => (inMs: readonly number[]) => boolean;
  /** The service asked for a wait: those given before it are void. */
  readonly forget: () => void;
};

export function openTurnsAhead(now: () => number): TurnsAhead {
  let turns: readonly TurnAt[] = [];
  let forgotten = 0;

  function valid(): readonly TurnAt[] {
    const nowMs = now();
    return turns.filter((atMs) => atMs > nowMs - VALID_MS);
  }

  return {
    count: () => valid().length,
    take() {
      const [first, ...others] = valid();
      turns = others;
      return first;
    },
    asking() {
      const forgottenBefore = forgotten;
      return (inMs) => {
        if (forgotten !== forgottenBefore) return false;
        const nowMs = now();
        turns = [...valid(), ...inMs.map((ms) => nowMs + ms)];
        return true;
      };
    },
    forget() {
      forgotten++;
      turns = [];
    },
  };
}
