// Waiting that an abort ends, with the abort's own reason.

import { setTimeout } from "node:timers/promises";

export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await setTimeout(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** Waits until the promise is settled, whatever becomes of it. */
export async function settled(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await Promise.race([promise.catch(() => undefined), aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
