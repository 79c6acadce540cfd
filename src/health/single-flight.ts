// Limits concurrent reads: callers share one read, or reads run one after another. No caller waits longer than a limit.

import { setTimeout } from "node:timers/promises";

/** What was read, or why nothing was. */
export type ReadResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/**
 * Whoever asks while a reading is under way gets that one: never are two under way, however slow it is. When it has taken
 * `waitMsMax` all go without it, who asks after that at once.
 */
export function shareInFlight<T>(read: () => Promise<T>, waitMsMax: number): () => Promise<ReadResult<T>> {
  let underWay: Promise<ReadResult<T>> | undefined;

  function begin(): Promise<ReadResult<T>> {
    const whole = readOnce(read).finally(() => {
      underWay = undefined;
    });
    return withTimeout(waitMsMax, whole);
  }

  return () => {
    underWay ??= begin();
    return underWay;
  };
}

/**
 * For readings that differ from each other: each begins when the one before it is over. Who asks goes without it after
 * `waitMsMax`; what nobody waits for any more is not begun, and is told by its signal.
 */
export function oneAtATime(waitMsMax: number): <T>(read: (left: AbortSignal) => Promise<T>) => Promise<ReadResult<T>> {
  let before: Promise<unknown> = Promise.resolve();
  return (read) => {
    const left = AbortSignal.timeout(waitMsMax);
    const whole = before.then(() =>
      readOnce(() => {
        left.throwIfAborted();
        return read(left);
      }),
    );
    before = whole;
    return withTimeout(waitMsMax, whole);
  };
}

async function readOnce<T>(read: () => Promise<T>): Promise<ReadResult<T>> {
  try {
    return { ok: true, value: await read() };
  } catch (error) {
    return { ok: false, error };
  }
}

async function withTimeout<T>(ms: number, whole: Promise<ReadResult<T>>): Promise<ReadResult<T>> {
  const over = new AbortController();
  const tooLate: ReadResult<T> = { ok: false, error: new Error(`not read within ${ms / 1000} s`) };
  const late = setTimeout(ms, tooLate, { signal: over.signal, ref: false });
  try {
    return await Promise.race([whole, late]);
  } finally {
    late.catch(() => {});
    over.abort();
  }
}
