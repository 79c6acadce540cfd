// Waiting, batching and memoizing of asynchronous work.

import { once } from "node:events";
import { setTimeout } from "node:timers/promises";

export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** If aborted, rejects with the signal's reason. Node's own `setTimeout` would reject with an AbortError. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await setTimeout(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** Works on `atOnce` items at a time. After an error, or once `isOver()`, no further item is begun; those begun are awaited. */
export async function inParallel<In>(
  items: readonly In[],
  atOnce: number,
  work: (item: In) => Promise<void>,
  isOver = () => false,
): Promise<void> {
  const remaining = items.values();
  const errors: unknown[] = [];
  const workOnNext = async () => {
    for (const item of remaining) {
      if (errors.length > 0 || isOver()) return;
      await work(item).catch((error: unknown) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, workOnNext));
  if (errors.length > 0) throw errors[0];
}

type Batching<In> = {
  /** The highest total weight of a batch, unless a single item is heavier. */
  readonly weightMax: number;
  readonly weightOf?: (item: In) => number;
  /** Awaited before a batch that is not full. Items that come meanwhile join the batch. */
  readonly beforeBatch?: () => Promise<unknown>;
  /** How many batches may run at once; 1 if left out. */
  readonly concurrency?: number;
};

type PendingItem<In, Out> = PromiseWithResolvers<Out> & { readonly item: In; readonly weight: number };

/** While one batch runs, the next one fills. `run` returns one result per item, in their order; an Error among them fails only its item. */
export function batched<In, Out>(
  run: (items: readonly In[]) => Promise<readonly (Out | Error)[]>,
  { weightMax, weightOf = () => 1, beforeBatch, concurrency = 1 }: Batching<In>,
): (item: In) => Promise<Out> {
  const waiting: PendingItem<In, Out>[] = [];
  let weightWaiting = 0;
  let running = 0;
  // While a batch waits for more items, no second `runBatches` is begun: it would take the same items.
  let isFilling = false;

  function takeBatch(): PendingItem<In, Out>[] {
    let weight = 0;
    let count = 0;
    for (const pending of waiting) {
      if (count > 0 && weight + pending.weight > weightMax) break;
      weight += pending.weight;
      count++;
    }
    weightWaiting -= weight;
    return waiting.splice(0, count);
  }

  async function runBatches(): Promise<void> {
    running++;
    while (waiting.length > 0) {
      isFilling = true;
      // Items that are added in the same synchronous code join the batch.
      await Promise.resolve();
      if (weightWaiting < weightMax) await beforeBatch?.();
      isFilling = false;
      // A concurrent batch may already have taken every item.
      const batch = takeBatch();
      if (batch.length === 0) continue;
      if (waiting.length > 0) startIfFree();
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

  function startIfFree(): void {
    if (running < concurrency && !isFilling) void runBatches();
  }

  return (item) => {
    const pending = { item, weight: weightOf(item), ...Promise.withResolvers<Out>() };
    waiting.push(pending);
    weightWaiting += pending.weight;
    startIfFree();
    return pending.promise;
  };
}

/** Runs `work` on request. Any number of requests while it runs make it run once more. `work` must not throw. */
export function serialTask(work: () => Promise<unknown>) {
  let requested = false;
  let stopped = false;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (requested && !stopped) {
      requested = false;
      await work();
    }
    running = undefined;
  }

  return {
    request(): void {
      requested = true;
      running ??= run();
    },
    /** Waits for the current run. Later requests have no effect. */
    async stop(): Promise<void> {
      stopped = true;
      await running;
    },
  };
}

/** Calls `ask` only if no answer for the key is kept or awaited. An answer is kept for `keepMs`. An error goes to all who wait for it. */
export function memoizeAsync<T>(
  keepMs: (answer: T) => number = () => Number.POSITIVE_INFINITY,
  now: () => number = () => performance.now(),
): (key: string, ask: () => Promise<T>) => Promise<T> {
  const known = new Map<string, { readonly answer: Promise<T>; readonly untilMs: number }>();
  return async (key, ask) => {
    // Deletes stale answers to limit memory. The loop ends at the first fresh answer, so stale ones after it stay longer.
    for (const [oldest, { untilMs }] of known) {
      if (now() < untilMs) break;
      known.delete(oldest);
    }
    const kept = known.get(key);
    if (kept && now() < kept.untilMs) return kept.answer;
    const begun = ask();
    known.set(key, { answer: begun, untilMs: Number.POSITIVE_INFINITY });
    try {
      const answer = await begun;
      known.set(key, { answer: begun, untilMs: now() + keepMs(answer) });
      return answer;
    } catch (error) {
      known.delete(key);
      throw error;
    }
  };
}

/** Each read begins when the previous one is over. After `waitMsMax` the caller gets an error; its read is aborted, or never begins. */
export function oneAtATime(waitMsMax: number): <T>(read: (signal: AbortSignal) => Promise<T>) => Promise<T> {
  let previous: Promise<unknown> = Promise.resolve();
  return (read) => {
    const signal = AbortSignal.timeout(waitMsMax);
    const late = once(signal, "abort").then(() => {
      throw new Error(`not read within ${waitMsMax / 1000} s`);
    });
    const result = previous.then(() => {
      signal.throwIfAborted();
      return read(signal);
    });
    previous = result.catch(() => {});
    return Promise.race([result, late]);
  };
}
