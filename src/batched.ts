// Joins what is asked for at the same time: while one batch is under way the next one gathers. Pure but for the waiting.

export type Batching<In> = {
  /** A batch holds items of this weight together at most, or one that is heavier by itself. */
  readonly weightMax: number;
  readonly weightOf: (item: In) => number;
  /** A batch that is not full waits for this, and for what comes meanwhile. */
  readonly gather?: () => Promise<unknown>;
  /** How many batches may be under way: with more than one, an item may be done before one that was asked for earlier. */
  readonly atOnce?: number;
};

type Waiting<In, Out> = {
  readonly item: In;
  readonly resolve: (out: Out) => void;
  readonly reject: (reason: unknown) => void;
};

/**
 * Batches in the order of asking. `run` answers each item in its place; an Error there fails that item alone,
 * and one that is thrown fails the batch.
 */
export function batched<In, Out extends object | number | undefined>(
  run: (items: readonly In[]) => Promise<readonly (Out | Error)[]>,
  { weightMax, weightOf, gather, atOnce = 1 }: Batching<In>,
): (item: In) => Promise<Out> {
  const waiting: Waiting<In, Out>[] = [];
  let running = 0;
  let gathering = false;

  function takeBatch(): Waiting<In, Out>[] {
    let weight = 0;
    const tooHeavy = waiting.findIndex(({ item }, i) => {
      weight += weightOf(item);
      return i > 0 && weight > weightMax;
    });
    return waiting.splice(0, tooHeavy === -1 ? waiting.length : tooHeavy);
  }

  function weightOfAll(): number {
    return waiting.reduce((sum, { item }) => sum + weightOf(item), 0);
  }

  async function runAll(): Promise<void> {
    running++;
    while (waiting.length > 0) {
      gathering = true;
      // What is asked for in the same moment comes along.
      await Promise.resolve();
      if (weightOfAll() < weightMax) await gather?.();
      gathering = false;
      // Another one that gathered too may have taken all.
      const batch = takeBatch();
      if (batch.length === 0) continue;
      if (waiting.length > 0) goOn();
      try {
        const outs = await run(batch.map(({ item }) => item));
        for (const [i, { resolve, reject }] of batch.entries()) {
          const out = outs[i];
          if (out instanceof Error) reject(out);
          else resolve(out as Out);
        }
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    running--;
  }

  function goOn(): void {
    if (running < atOnce && !gathering) void runAll();
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      goOn();
    });
}
