// Limits the calls of this process to the service: how many are in flight, how many start in a second, and the pauses that the service asks
// for. The process has some of the slots of `maxConcurrent`, and with them the same part of `requestsPerSecond`.

import type { Sleep } from "../async.ts";
import { tooLong } from "./errors.ts";

/** The caps of all processes together. */
export type RateCaps = { readonly requestsPerSecond: number; readonly maxConcurrent: number };
/** The caller of one call. Pauses are by the name of the key. If a pause is longer than `waitMsMax`, the call fails. */
type Caller = { readonly key: string; readonly project: string; readonly waitMsMax: number };
/** The right to make one call, until it is released. While it is not valid nothing may be sent: another process may have its slot. */
type Permit = { readonly isValid: () => boolean; readonly release: () => void };
/** What a call needs of the limiter. */
export type Rate = Pick<ReturnType<typeof openLimiter>, "acquire" | "pausedMs" | "pause"> & {
  /** Gives the slots back to other processes, unless calls are in flight. */
  readonly rest: () => Promise<void>;
};

/** A call that waits for a slot. It gets the moment from which on it may start. */
type Waiter = PromiseWithResolvers<number> & { readonly project: string };

/** The name of all keys together. */
export const EVERY_KEY = "";
/** Calls that started late because a timer was late are made up for, up to this time, so that the rate is reached. */
const LATE_MS_MAX = 100;

/** `now` is a clock that never goes back, in milliseconds. `onDemand` is called when a call asks for a slot. */
export function openLimiter(caps: () => RateCaps, now: () => number, sleep: Sleep, onDemand = () => {}) {
  /** The slots of this process, until then. A share that ran out gets another number, as its slots may be in use elsewhere. */
  let share = { slots: 0, untilMs: Number.NEGATIVE_INFINITY, number: 0 };
  /** When the next call may start, for the sake of the rate. */
  let nextStartMs = 0;
  /** The projects of the calls that have a slot. */
  const inFlight: string[] = [];
  const waiting = new Set<Waiter>();
  /** When the pause of a key ends, by its name. */
  const pauses = new Map<string, number>();

  /** 0 if the share was not renewed in time. */
  const slots = () => (now() < share.untilMs ? share.slots : 0);
  const intervalMs = () => (1000 * caps().maxConcurrent) / (caps().requestsPerSecond * share.slots);
  const pausedMs = (key: string) => Math.max((pauses.get(key) ?? 0) - now(), (pauses.get(EVERY_KEY) ?? 0) - now(), 0);

  function serve(): void {
    while (inFlight.length < slots()) {
      const waiter = nextWaiter(waiting, inFlight);
      if (!waiter) return;
      waiting.delete(waiter);
      inFlight.push(waiter.project);
      // Less than the time of `slots` calls, so that all processes together start at most `maxConcurrent` calls beyond the rate.
      const lateMs = Math.min(LATE_MS_MAX, (share.slots - 1) * intervalMs());
      const startMs = nextStartMs < now() - lateMs ? now() : nextStartMs;
      nextStartMs = startMs + intervalMs();
      waiter.resolve(startMs);
    }
  }

  async function waitForSlot(project: string, signal: AbortSignal): Promise<number> {
    const waiter = { project, ...Promise.withResolvers<number>() };
    const stop = () => {
      waiter.reject(signal.reason);
      waiting.delete(waiter);
    };
    waiting.add(waiter);
    signal.addEventListener("abort", stop, { once: true });
    serve();
    return await waiter.promise.finally(() => signal.removeEventListener("abort", stop));
  }

  function release(project: string): void {
    inFlight.splice(inFlight.indexOf(project), 1);
    serve();
  }

  return {
    slots,
    pausedMs,
    inFlight: () => inFlight.length,
    isIdle: () => inFlight.length + waiting.size === 0,
    async acquire({ key, project, waitMsMax }: Caller, signal: AbortSignal): Promise<Permit> {
      for (;;) {
        signal.throwIfAborted();
        const ms = pausedMs(key);
        if (ms > waitMsMax) throw tooLong("the service", ms, waitMsMax, { sent: "no" });
        if (ms > 0) await sleep(ms, signal);
        onDemand();
        const startMs = await waitForSlot(project, signal);
        const { number } = share;
        const isValid = () => number === share.number && slots() > 0 && pausedMs(key) === 0;
        try {
          // No timer is set for less than a millisecond.
          if (startMs - now() >= 1) await sleep(startMs - now(), signal);
        } catch (error) {
          release(project);
          throw error;
        }
        if (isValid()) return { isValid, release: () => release(project) };
        release(project);
      }
    },
    /** With `startsLater`, another process may just have made a call on a slot that is added: the next call waits for an interval. */
    setShare(count: number, untilMs: number, startsLater: boolean): void {
      const isAdded = count > slots();
      share = { slots: count, untilMs, number: share.number + (now() < share.untilMs ? 0 : 1) };
      if (isAdded && startsLater) nextStartMs = Math.max(nextStartMs, now() + intervalMs());
      serve();
    },
    /** A shorter pause does not end a longer one. */
    pause(key: string, ms: number): void {
      pauses.set(key, Math.max(pauses.get(key) ?? 0, now() + ms));
    },
    rejectWaiting(error: unknown): void {
      for (const { reject } of waiting) reject(error);
      waiting.clear();
    },
  };
}

/** The first one of the project with the fewest calls in flight: one whose calls hang gets no further slot while others want one. */
function nextWaiter(waiting: ReadonlySet<Waiter>, inFlight: readonly string[]): Waiter | undefined {
  let next: Waiter | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const waiter of waiting) {
    const calls = inFlight.filter((project) => project === waiter.project).length;
    if (calls < fewest) [next, fewest] = [waiter, calls];
    if (calls === 0) break;
  }
  return next;
}
