// Limits the calls of this process to the service: how many are in flight, how many start in a second, and the pauses that the service asks
// for. The process has some of the slots of `maxConcurrent`, and with them the same part of `requestsPerSecond`.

import type { Sleep } from "../async.ts";
import { tooLong } from "./errors.ts";

/** The caps of all processes together. */
export type RateCaps = { readonly requestsPerSecond: number; readonly maxConcurrent: number };
/** Whose call it is. Pauses are by the name of the key. If a pause is longer than `waitMsMax`, the call fails. */
type Caller = { readonly key: string; readonly project: string; readonly waitMsMax: number };
type Waiter = Caller & PromiseWithResolvers<Permit>;
/** The right to make one call, until it is released. While it is not valid nothing may be sent: another process may have its slot. */
type Permit = { readonly isValid: () => boolean; readonly release: () => void };
/** What a call needs of the limiter. */
export type Rate = Pick<ReturnType<typeof openLimiter>, "acquire" | "pausedMs" | "pause"> & {
  /** Gives the slots back to other processes, unless calls are in flight. */
  readonly rest: () => Promise<void>;
};

/** The name of all keys together. */
export const EVERY_KEY = "";
/** Calls that started late because a timer was late are made up for, up to this time, so that the rate is reached. */
const LATE_MS_MAX = 100;
/** How long a slot is kept free for a project after its last call. */
const SEEN_MS = 60_000;

/** `now` is in milliseconds and never goes back, unlike the time of day. `onDemand` is called when a call asks for a slot. */
export function openLimiter(caps: () => RateCaps, now: () => number, sleep: Sleep, onDemand = () => {}) {
  const waiting = new Set<Waiter>();
  /** The projects of the calls in flight. */
  const inFlight: string[] = [];
  /** When each project asked for a slot last. */
  const seen = new Map<string, number>();
  /** By the name of the key, when its pause ends. */
  const pauses = new Map<string, number>();
  let share = { slots: 0, untilMs: Number.NEGATIVE_INFINITY, number: 0 };
  let nextStartMs = Number.NEGATIVE_INFINITY;
  let alarm = { atMs: Number.POSITIVE_INFINITY, end: new AbortController() };

  /** 0 if the share was not renewed in time. */
  const slots = () => (now() < share.untilMs ? share.slots : 0);
  const intervalMs = () => (1000 * caps().maxConcurrent) / (caps().requestsPerSecond * share.slots);
  const pausedUntilMs = (key: string) => Math.max(pauses.get(key) ?? 0, pauses.get(EVERY_KEY) ?? 0);
  /** Milliseconds until a call with this key may start. */
  const pausedMs = (key: string) => Math.max(pausedUntilMs(key) - now(), 0);

  /** Starts the calls that may start now, and is called again when another one may. */
  function serve(): void {
    // A moment that passes while calls are started still gets its alarm.
    const calledMs = now();
    for (const one of waiting) {
      const ms = pausedMs(one.key);
      if (ms > one.waitMsMax && waiting.delete(one))
        one.reject(tooLong("the service", ms, one.waitMsMax, { sent: "no" }));
    }
    for (let next = first(); next && waiting.delete(next); next = first()) next.resolve(start(next));
    const hasRoom = inFlight.length < slots();
    const startsMs = [...waiting].map(({ key }) => Math.max(pausedUntilMs(key), hasRoom ? nextStartMs : 0));
    setAlarm(Math.min(...startsMs.filter((ms) => ms > calledMs)));
  }

  /** Of the project with the fewest calls in flight. One whose calls hang holds its part of the slots, or leaves one free for the others. */
  function first(): Waiter | undefined {
    if (waiting.size === 0 || inFlight.length >= slots() || nextStartMs > now()) return undefined;
    for (const [project, atMs] of seen) if (atMs < now() - SEEN_MS) seen.delete(project);
    const ready = [...waiting].filter(({ key }) => pausedMs(key) === 0);
    const calls = Map.groupBy(inFlight, (project) => project);
    const callsOf = ({ project }: Waiter) => calls.get(project)?.length ?? 0;
    const least = Math.min(...ready.map(callsOf));
    const isFair = least === 0 || least < Math.floor(slots() / seen.size) || inFlight.length + 1 < slots();
    return isFair ? ready.find((one) => callsOf(one) === least) : undefined;
  }

  function start({ key, project }: Waiter): Permit {
    // Less than the time of `slots` calls, so that all processes together start at most `maxConcurrent` calls beyond the rate.
    const lateMs = Math.min(LATE_MS_MAX, (share.slots - 1) * intervalMs());
    nextStartMs = (nextStartMs < now() - lateMs ? now() : nextStartMs) + intervalMs();
    inFlight.push(project);
    const { number } = share;
    return {
      isValid: () => number === share.number && slots() > 0 && pausedMs(key) === 0,
      release() {
        inFlight.splice(inFlight.indexOf(project), 1);
        serve();
      },
    };
  }

  /** Infinity: none. A timer that nobody waits for would keep the process running. */
  function setAlarm(atMs: number): void {
    if (alarm.atMs === atMs) return;
    alarm.end.abort("another time");
    const own = { atMs, end: new AbortController() };
    alarm = own;
    const ring = () => {
      own.atMs = Number.POSITIVE_INFINITY;
      serve();
    };
    if (Number.isFinite(atMs)) sleep(Math.max(atMs - now(), 0), own.end.signal).then(ring, () => {});
  }

  return {
    slots,
    pausedMs,
    inFlight: () => inFlight.length,
    waiting: () => waiting.size,
    async acquire(caller: Caller, signal: AbortSignal): Promise<Permit> {
      signal.throwIfAborted();
      const waiter = { ...caller, ...Promise.withResolvers<Permit>() };
      const leave = () => {
        waiter.reject(signal.reason);
        if (waiting.delete(waiter)) serve();
      };
      waiting.add(waiter);
      seen.set(caller.project, now());
      signal.addEventListener("abort", leave, { once: true });
      onDemand();
      serve();
      return await waiter.promise.finally(() => signal.removeEventListener("abort", leave));
    },
    /** With `startsLater`, another process may just have made a call on a slot that is added: the next call waits for an interval. */
    setShare(count: number, untilMs: number, startsLater: boolean): void {
      const isAdded = count > slots();
      // Permits that outlived their share never become valid again.
      share = { slots: count, untilMs, number: share.number + (now() < share.untilMs ? 0 : 1) };
      if (isAdded && startsLater) nextStartMs = Math.max(nextStartMs, now() + intervalMs());
      serve();
    },
    /** A shorter pause does not end a longer one. */
    pause(key: string, ms: number): void {
      pauses.set(key, Math.max(pauses.get(key) ?? 0, now() + ms));
      serve();
    },
    rejectWaiting(error: unknown): void {
      for (const one of waiting) if (waiting.delete(one)) one.reject(error);
      serve();
    },
  };
}
