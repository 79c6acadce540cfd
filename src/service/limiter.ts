// Limits the calls of this process to the service: how many are in flight, how many start in a second, and the pauses that the service asks
// for. The process has some of the slots of `maxConcurrent`, and with them the same part of `requestsPerSecond`.

import type { Sleep } from "../async.ts";
import { tooLong } from "./errors.ts";

/** The caps of all processes together. */
export type RateCaps = { readonly requestsPerSecond: number; readonly maxConcurrent: number };
/** Whose call it is. Pauses are by the name of the key. If a pause is longer than `waitMsMax`, the call fails. */
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

/** What the limiter knows. Times are milliseconds of a clock that never goes back. */
type State = {
  /** The slots of this process, until then. A share that ran out gets another number, as its slots may be in use elsewhere. */
  share: { readonly slots: number; readonly untilMs: number; readonly number: number };
  /** The projects of the calls that have a slot. */
  readonly inFlight: string[];
  readonly waiting: Set<Waiter>;
  /** When the next call may start, for the sake of the rate. */
  nextStartMs: number;
  /** When the pause of a key ends, by its name. */
  readonly pauses: Map<string, number>;
};

/** The name of all keys together. */
export const EVERY_KEY = "";
/** Calls that started late because a timer was late are made up for, up to this time, so that the rate is reached. */
const LATE_MS_MAX = 100;
/** No timer is set for less. */
const TIMER_MS = 1;

/** `now` is the clock. `onDemand` is called when a call asks for a slot. */
export function openLimiter(caps: () => RateCaps, now: () => number, sleep: Sleep, onDemand = () => {}) {
  const share = { slots: 0, untilMs: Number.NEGATIVE_INFINITY, number: 0 };
  const state: State = { share, inFlight: [], waiting: new Set(), nextStartMs: 0, pauses: new Map() };
  /** 0 if the share was not renewed in time. */
  const slots = () => (now() < state.share.untilMs ? state.share.slots : 0);
  const intervalMs = () => (1000 * caps().maxConcurrent) / (caps().requestsPerSecond * state.share.slots);
  const pausedMs = (key: string) =>
    Math.max(Math.max(state.pauses.get(key) ?? 0, state.pauses.get(EVERY_KEY) ?? 0) - now(), 0);

  function serve(): void {
    while (state.inFlight.length < slots()) {
      const waiter = nextWaiter(state);
      if (!waiter) return;
      state.waiting.delete(waiter);
      state.inFlight.push(waiter.project);
      // Less than the time of `slots` calls, so that all processes together start at most `maxConcurrent` calls beyond the rate.
      const lateMs = Math.min(LATE_MS_MAX, (state.share.slots - 1) * intervalMs());
      const startMs = state.nextStartMs < now() - lateMs ? now() : state.nextStartMs;
      state.nextStartMs = startMs + intervalMs();
      waiter.resolve(startMs);
    }
  }

  async function slot(project: string, signal: AbortSignal): Promise<number> {
    const waiter = { project, ...Promise.withResolvers<number>() };
    const stop = () => {
      waiter.reject(signal.reason);
      state.waiting.delete(waiter);
    };
    state.waiting.add(waiter);
    signal.addEventListener("abort", stop, { once: true });
    serve();
    return await waiter.promise.finally(() => signal.removeEventListener("abort", stop));
  }

  function release(project: string): void {
    state.inFlight.splice(state.inFlight.indexOf(project), 1);
    serve();
  }

  return {
    slots,
    pausedMs,
    inFlight: () => state.inFlight.length,
    isIdle: () => state.inFlight.length + state.waiting.size === 0,
    async acquire({ key, project, waitMsMax }: Caller, signal: AbortSignal): Promise<Permit> {
      for (;;) {
        signal.throwIfAborted();
        const ms = pausedMs(key);
        if (ms > waitMsMax) throw tooLong("the service", ms, waitMsMax, { sent: "no" });
        if (ms > 0) await sleep(ms, signal);
        onDemand();
        const startMs = await slot(project, signal);
        const { number } = state.share;
        const isValid = () => number === state.share.number && slots() > 0 && pausedMs(key) === 0;
        try {
          if (startMs - now() >= TIMER_MS) await sleep(startMs - now(), signal);
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
      state.share = { slots: count, untilMs, number: state.share.number + (now() < state.share.untilMs ? 0 : 1) };
      if (isAdded && startsLater) state.nextStartMs = Math.max(state.nextStartMs, now() + intervalMs());
      serve();
    },
    /** A shorter pause does not end a longer one. */
    pause(key: string, ms: number): void {
      state.pauses.set(key, Math.max(state.pauses.get(key) ?? 0, now() + ms));
    },
    rejectWaiting(error: unknown): void {
      for (const { reject } of state.waiting) reject(error);
      state.waiting.clear();
    },
  };
}

/** The first one of the project with the fewest calls in flight: one whose calls hang gets no further slot while others want one. */
function nextWaiter({ waiting, inFlight }: State): Waiter | undefined {
  const callsOf = new Map<string, number>();
  for (const project of inFlight) callsOf.set(project, (callsOf.get(project) ?? 0) + 1);
  let next: Waiter | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const waiter of waiting) {
    const calls = callsOf.get(waiter.project) ?? 0;
    if (calls < fewest) [next, fewest] = [waiter, calls];
    if (calls === 0) break;
  }
  return next;
}
