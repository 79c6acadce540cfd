// Limits the calls of this process to the service: how many are in flight, how many start in a second, and the pauses that the service asks
// for. The process has a share of the `maxConcurrent` slots, and the same share of `requestsPerSecond`.

import { addAbortListener } from "node:events";
import type { Sleep } from "../async.ts";
import { AppError } from "../errors.ts";

/** The caps of all processes together. */
export type RateCaps = { readonly requestsPerSecond: number; readonly maxConcurrent: number };
type PermitRequest = { readonly key: string; readonly project: string; readonly waitMsMax: number };
/** The right to make one call, until it is released. Unless it is valid, nothing may be sent: another process may have its slot, or a pause began. */
type Permit = { readonly isValid: () => boolean; readonly release: () => void };
/** The limiter of this process, as its callers see it. */
export type RateLimiter = Pick<Limiter, "acquire" | "pausedMs" | "pause"> & {
  /** Releases the slots to other processes, unless calls are in flight. */
  readonly releaseSlots: () => Promise<void>;
};

/** A call that waits for a slot. The promise gives the earliest time at which the call may start. */
type Waiter = PromiseWithResolvers<number> & { readonly project: string };

/** Given instead of a key's name to pause all calls. */
export const EVERY_KEY = "";
/** How far starts may lag behind their schedule, as after a late timer, and still catch up. After a longer lag the schedule begins anew. */
const LATE_MS_MAX = 100;

/** The slots of this process until `untilMs`. After it has expired the next share has a new generation, as others may have used the slots. */
type Share = { readonly slots: number; readonly untilMs: number; readonly generation: number };

export class Limiter {
  /** The caps of the newest configuration. */
  caps: RateCaps;
  readonly #now: () => number;
  readonly #sleep: Sleep;
  #share: Share = { slots: 0, untilMs: Number.NEGATIVE_INFINITY, generation: 0 };
  /** The earliest time at which the rate lets a call start. */
  #nextStartMs = 0;
  /** The projects of the calls that have a slot. */
  readonly #inFlight: string[] = [];
  readonly #waiting = new Set<Waiter>();
  /** When the pause of a key ends, by its name. */
  readonly #pauses = new Map<string, number>();

  /** `now` is a clock that never goes back, in milliseconds. */
  constructor(caps: RateCaps, now: () => number, sleep: Sleep) {
    this.caps = caps;
    this.#now = now;
    this.#sleep = sleep;
  }

  /** Called when a call asks for a slot. */
  protected onSlotRequest(): void {}

  /** 0 if the share was not renewed in time. */
  get slots(): number {
    return this.#now() < this.#share.untilMs ? this.#share.slots : 0;
  }

  get inFlight(): number {
    return this.#inFlight.length;
  }

  get isIdle(): boolean {
    return this.#inFlight.length + this.#waiting.size === 0;
  }

  pausedMs(key: string): number {
    const untilMs = Math.max(this.#pauses.get(key) ?? 0, this.#pauses.get(EVERY_KEY) ?? 0);
    return Math.max(untilMs - this.#now(), 0);
  }

  /** A shorter pause does not end a longer one. */
  pause(key: string, ms: number): void {
    this.#pauses.set(key, Math.max(this.#pauses.get(key) ?? 0, this.#now() + ms));
  }

  /** `startsLater`: after slots are added, the next start waits `#intervalMs`, because another process may just have used one of them. */
  setShare(slots: number, untilMs: number, { startsLater }: { readonly startsLater: boolean }): void {
    const isAdded = slots > this.slots;
    const generation = this.#share.generation + (this.#now() < this.#share.untilMs ? 0 : 1);
    this.#share = { slots, untilMs, generation };
    if (isAdded && startsLater) this.#nextStartMs = Math.max(this.#nextStartMs, this.#now() + this.#intervalMs());
    this.#giveSlots();
  }

  rejectWaiting(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
  }

  async acquire({ key, project, waitMsMax }: PermitRequest, signal: AbortSignal): Promise<Permit> {
    for (;;) {
      signal.throwIfAborted();
      const ms = this.pausedMs(key);
      if (ms > waitMsMax) throw longWaitError("the service", ms, waitMsMax, { sent: "no" });
      if (ms > 0) await this.#sleep(ms, signal);
      this.onSlotRequest();
      const startMs = await this.#waitForSlot(project, signal);
      const { generation } = this.#share;
      const isValid = () => generation === this.#share.generation && this.slots > 0 && this.pausedMs(key) === 0;
      const release = () => {
        this.#inFlight.splice(this.#inFlight.indexOf(project), 1);
        this.#giveSlots();
      };
      try {
        // No timer is set for less than a millisecond.
        const waitMs = startMs - this.#now();
        if (waitMs >= 1) await this.#sleep(waitMs, signal);
      } catch (error) {
        release();
        throw error;
      }
      if (isValid()) return { isValid, release };
      release();
    }
  }

  async #waitForSlot(project: string, signal: AbortSignal): Promise<number> {
    const waiter = { project, ...Promise.withResolvers<number>() };
    this.#waiting.add(waiter);
    using _ = addAbortListener(signal, () => {
      waiter.reject(signal.reason);
      this.#waiting.delete(waiter);
    });
    this.#giveSlots();
    return await waiter.promise;
  }

  #giveSlots(): void {
    while (this.#inFlight.length < this.slots) {
      const waiter = nextWaiter(this.#waiting, this.#inFlight);
      if (!waiter) return;
      this.#waiting.delete(waiter);
      this.#inFlight.push(waiter.project);
      // A late process makes up for fewer calls than it has slots. So all processes exceed the rate by fewer than `maxConcurrent` calls.
      const lateMs = Math.min(LATE_MS_MAX, (this.#share.slots - 1) * this.#intervalMs());
      const startMs = this.#nextStartMs < this.#now() - lateMs ? this.#now() : this.#nextStartMs;
      this.#nextStartMs = startMs + this.#intervalMs();
      waiter.resolve(startMs);
    }
  }

  #intervalMs(): number {
    return (1000 * this.caps.maxConcurrent) / (this.caps.requestsPerSecond * this.#share.slots);
  }
}

/** The first waiter of the project with the fewest calls in flight: a project whose calls hang gets no further slot while others want one. */
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

/** The error if the service demands a wait longer than `waitMsMax`: to call sooner would defy it. `subject` begins the message. */
export function longWaitError(subject: string, ms: number, waitMsMax: number, details: AppError["details"]): AppError {
  const message = `${subject} asks to be called again in ${Math.ceil(ms / 1000)} s, and this program waits at most ${waitMsMax / 1000} s`;
  return new AppError("rate_limited", message, { details });
}
