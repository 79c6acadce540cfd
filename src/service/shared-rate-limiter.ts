// The rate limiter when several processes call one service: slots and permits are given by the database.

import { randomUUID } from "node:crypto";
import type { Sleep } from "../async.ts";
import { type Pace, tooLong } from "./rate-limiter.ts";

/** Where the pace is kept: the questions and what they answer are those of the database. */
export type Turns = {
  readonly take: TakeTurns;
  readonly keep: (callIds: readonly string[]) => Promise<void>;
  readonly hold: (ms: number) => Promise<void>;
};

/** A third of the time after which a call without a sign of life loses its place. */
const KEEP_MS = 3_000;

export function openSharedPace(
  turns: Turns,
  waitMsMax: number,
  now: () => number,
  sleep: Sleep,
  tell?: TellOfWait,
): Pace {
  let holding: Promise<unknown> = Promise.resolve();
  // After what the service asked for, or turns would be given that are void.
  const take: TakeTurns = (calls) => holding.then(() => turns.take(calls));
  const line = openTurnLine(take, waitMsMax, now, sleep, tell);
  const telling = new Set<Promise<void>>();
  const keeping = setInterval(() => {
    if (line.places.size > 0) turns.keep([...line.places]).catch(() => {});
  }, KEEP_MS);
  keeping.unref();

  /** What the database does not hear of it finds out by itself, as nobody says that the call lives. */
  function end(name: string): void {
    const told: Promise<void> = line.end(name).finally(() => telling.delete(told));
    telling.add(told);
  }

  return {
    async enter(signal) {
      let name: string = randomUUID();
      try {
        for (;;) {
          const place = await line.wait(name, signal);
          name = place.name;
          if (place.waitMs <= 0) return () => end(place.name);
          // Asked again after it, as the service may have asked for another wait meanwhile.
          await sleep(place.waitMs, signal);
        }
      } catch (error) {
        end(name);
        throw error;
      }
    },
    hold(ms) {
      line.forgetAhead();
      holding = Promise.allSettled([holding, turns.hold(ms)]);
    },
    async close() {
      clearInterval(keeping);
      line.close();
      await holding;
      await Promise.all(telling);
    },
  };
}

// The calls of this process that want a place among those that a service may get at once, and the places it has. What comes
// at the same time is told and asked together. Where turns were given ahead, a place goes on to the next call without asking.

/** Milliseconds until the turn or until the service may be called again; of `busy`, how many places away one is. */
export type TurnAnswer = { readonly outcome: "turn" | "busy" | "held"; readonly wait: number };

export type TakeTurns = (calls: {
  /** They have, or want, no place any more. */
  readonly ended: readonly string[];
  readonly waiting: readonly string[];
  /** How many turns more could be used on places that are there already. */
  readonly ahead: number;
}) => Promise<{
  /** Of each that waits, in their order: first come, first served. */
  readonly answers: readonly TurnAnswer[];
  /** Milliseconds until each turn given ahead: none while others wait. */
  readonly aheadMs: readonly number[];
}>;

/** How long to wait for each place that one is away: a call takes longer, and asking costs a statement. */
const LOOK_MS = 25;
const LOOK_MS_MAX = 250;
/** How long a process waits before it reads again whether the pause still holds: a person may have ended it. */
const HELD_LOOK_MS = 3_000;
/** How long a place without a call is kept for the next one of this process. */
const IDLE_MS = 10;
/** Turns ahead for each place: as many as calls of 25 ms use while a turn is valid. */
const AHEAD_PER_PLACE = 4;

/** Made once: an abort without a reason makes an error with a stack. */
const NEWS = "there is news";

/** Who was given a turn before the service asked for a wait has to ask for another. */
const AGAIN: TurnAnswer = { outcome: "busy", wait: 0 };

/** The place's name is that of the call it was first given to. */
type Place = { readonly name: string; readonly waitMs: number };

type Waiting = { readonly resolve: (place: Place) => void; readonly reject: (reason: unknown) => void };

export type TurnLine = {
  /** Resolves when the call has a place, with the milliseconds until its turn. Asked for a place, with what is left to wait. */
  readonly wait: (callId: string, signal: AbortSignal) => Promise<Place>;
  /** The call with this place is over, or the call wants none any more. Resolves when that is told, or can't be. */
  readonly end: (name: string) => Promise<void>;
  readonly places: ReadonlySet<string>;
  /** The service asked for a wait: turns that were given before it are void. */
  readonly forgetAhead: () => void;
  /** No call comes any more: places without one are given back at once. */
  readonly close: () => void;
};

/** Reports a long wait once, and reports when it is over. */
export type TellOfWait = (wait: "pause" | "places" | "over", seconds: number) => void;

/** A longer wait is reported, so that nobody has to guess why nothing happens. */
const LONG_WAIT_MS = 5_000;

export function openTurnLine(
  take: TakeTurns,
  waitMsMax: number,
  now: () => number,
  sleep: Sleep,
  tell: TellOfWait = () => {},
): TurnLine {
  /** In the order of their coming. */
  const line = new Map<string, Waiting>();
  const places = new Set<string>();
  /** Places without a call, each with what to do when one gets it. */
  const idle = new Map<string, () => void>();
  /** What the database is to be told of, each with what to do once it was. */
  let ended = new Map<string, () => void>();
  const ahead = openTurnsAhead(now);
  let news = new AbortController();
  let looking = false;
  /** When every call of this process began to wait, and whether that was reported. */
  let stuck: { readonly sinceMs: number; readonly told: boolean } | undefined;
  const closing = new AbortController();

  async function lookAfterAll(): Promise<void> {
    looking = true;
    // What comes in the same moment goes along.
    await Promise.resolve();
    let pauseMs = LOOK_MS;
    while (line.size > 0 || ended.size > 0) {
      if (pauseMs > 0) await slept(pauseMs);
      news = new AbortController();
      const busyMs = await ask([...line]);
      pauseMs = busyMs ?? (line.size > 0 ? 0 : LOOK_MS);
    }
    looking = false;
    // A wait that was given up, or that the database ended, is no part of the next one.
    if (!stuck?.told) stuck = undefined;
  }

  /** Or until there is news. */
  function slept(ms: number): Promise<void> {
    return sleep(ms, news.signal).catch(() => {});
  }

  /** How long those that have no place yet had best wait; undefined where there are none. */
  async function ask(asked: readonly (readonly [string, Waiting])[]): Promise<number | undefined> {
    const over = ended;
    const given = ahead.asking();
    ended = new Map();
    try {
      const { answers, aheadMs } = await take({
        ended: [...over.keys()],
        waiting: asked.map(([callId]) => callId),
        ahead: asked.length === 0 ? 0 : Math.max(AHEAD_PER_PLACE * places.size - ahead.count(), 0),
      });
      const isValid = given(aheadMs);
      watch(answers);
      const waits = asked.map(([callId, waiting], i) => {
        const answer = answers[i] ?? { outcome: "busy", wait: 1 };
        return settle(callId, waiting, isValid || answer.outcome !== "turn" ? answer : AGAIN);
      });
      return waits.filter((ms) => ms !== undefined).sort((a, b) => a - b)[0];
    } catch (error) {
      // What ended and was not told is found out: nobody says any more that it lives.
      for (const [callId, { reject }] of asked) {
        line.delete(callId);
        reject(error);
      }
      return undefined;
    } finally {
      for (const told of over.values()) told();
    }
  }

  function watch(answers: readonly TurnAnswer[]): void {
    if (answers.length === 0) return;
    const heldMs = Math.max(0, ...answers.map(({ outcome, wait }) => (outcome === "held" ? wait : 0)));
    const sinceMs = stuck?.sinceMs ?? now();
    const stuckMs = now() - sinceMs;
    if (heldMs === 0 && (places.size > 0 || answers.some(({ outcome }) => outcome === "turn"))) {
      if (stuck?.told) tell("over", Math.round(stuckMs / 1000));
      stuck = undefined;
      return;
    }
    const isLong = heldMs > LONG_WAIT_MS || stuckMs > LONG_WAIT_MS;
    if (isLong && !stuck?.told) {
      const [wait, ms] = heldMs > 0 ? (["pause", heldMs] as const) : (["places", stuckMs] as const);
      tell(wait, Math.ceil(ms / 1000));
    }
    stuck = { sinceMs, told: isLong || stuck?.told === true };
  }

  /** How long to wait before asking for the call again. One that left the line meanwhile is told as ended. */
  function settle(callId: string, { resolve, reject }: Waiting, { outcome, wait }: TurnAnswer): number | undefined {
    if (!line.has(callId)) return undefined;
    if (outcome === "busy") return Math.min(LOOK_MS * wait, LOOK_MS_MAX);
    if (outcome === "held" && wait <= waitMsMax) return Math.min(wait, HELD_LOOK_MS);
    line.delete(callId);
    if (outcome === "held") {
      reject(tooLong("the service", wait, waitMsMax, { sent: "no" }));
    } else {
      places.add(callId);
      resolve({ name: callId, waitMs: wait });
    }
    return undefined;
  }

  /** The place with a turn that was given ahead, if there is one. */
  function withTurn(name: string): Place | undefined {
    const atMs = ahead.take();
    return atMs === undefined ? undefined : { name, waitMs: Math.max(atMs - now(), 0) };
  }

  function heirOf(): readonly [string, Waiting] | undefined {
    return line.entries().find(([callId]) => !places.has(callId));
  }

  function look(): void {
    if (!looking) void lookAfterAll();
  }

  function tellEnded(name: string, isUrgent: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    ended.set(name, resolve);
    if (isUrgent) news.abort(NEWS);
    look();
    return promise;
  }

  /** For the next call of this process, which comes soon if at all. */
  async function rest(name: string): Promise<void> {
    const { promise: goesOn, resolve } = Promise.withResolvers<void>();
    idle.set(name, resolve);
    await Promise.race([goesOn, sleep(IDLE_MS, closing.signal).catch(() => {})]);
    if (idle.get(name) !== resolve) return;
    idle.delete(name);
    places.delete(name);
    await tellEnded(name, closing.signal.aborted);
  }

  return {
    places,
    async wait(callId, signal) {
      signal.throwIfAborted();
      const [free, goesOn] = places.has(callId) ? [] : ([...idle][0] ?? []);
      const place = free === undefined ? undefined : withTurn(free);
      if (place) {
        idle.delete(place.name);
        goesOn?.();
        return place;
      }
      const { promise, resolve, reject } = Promise.withResolvers<Place>();
      const leave = () => {
        line.delete(callId);
        reject(signal.reason);
      };
      // Behind others that wait there is nothing to ask for yet.
      if (line.size === 0 || places.has(callId)) news.abort(NEWS);
      line.set(callId, { resolve, reject });
      signal.addEventListener("abort", leave, { once: true });
      look();
      return promise.finally(() => signal.removeEventListener("abort", leave));
    },
    end(name) {
      if (!places.has(name)) return tellEnded(name, line.size === 0);
      const heir = heirOf();
      const place = heir ? withTurn(name) : undefined;
      if (heir && place) {
        const [callId, { resolve }] = heir;
        line.delete(callId);
        resolve(place);
        // More are asked for in time, before the last one is used.
        return tellEnded(callId, line.size > 0 && ahead.count() < places.size);
      }
      if (!heir && ahead.count() > 0 && !closing.signal.aborted) return rest(name);
      places.delete(name);
      return tellEnded(name, true);
    },
    forgetAhead: ahead.forget,
    close: () => closing.abort(NEWS),
  };
}

// The turns of this process that were given before anybody had a place for them.

/** How late one may be used: the rate is exceeded by no more than the calls of that time. */
const VALID_MS = 100;

/** Milliseconds of the clock at which a turn is, or was a moment ago. */
type TurnAt = number;

type TurnsAhead = {
  readonly count: () => number;
  readonly take: () => TurnAt | undefined;
  /** Asks for more, and keeps what comes. False where all were forgotten meanwhile: turns of that question are void. */
  readonly asking: () => (inMs: readonly number[]) => boolean;
  /** The service asked for a wait: those given before it are void. */
  readonly forget: () => void;
};

function openTurnsAhead(now: () => number): TurnsAhead {
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
