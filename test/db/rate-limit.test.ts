// The leases of several processes that share a service's rate limit: how slots are divided, and, on real connections, that the limits
// are never exceeded.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { sleep as sleepUntil } from "../../src/async.ts";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import {
  allocate,
  type Leases,
  pauseCalls,
  pausedUntil,
  releaseLease,
  renewLease,
  resumeCalls,
  type ServiceLimit,
} from "../../src/db/rate-limit.ts";
import { openLeasedRateLimiter, type RateLease } from "../../src/service/rate-lease.ts";
import type { RateLimiter } from "../../src/service/rate-limiter.ts";
import { testDatabase } from "../support/database.ts";

const { db, url } = await testDatabase();
const NEVER = new AbortController().signal;

/** A service of its own for each test. */
function limitOf(part: Partial<ServiceLimit> = {}): ServiceLimit {
  return { service: `https://${randomUUID()}.test`, requestsPerSecond: 1000, maxConcurrent: 4, ...part };
}

/** A model in which processes a, b, c … renew their leases. Times are in seconds. */
function openModel(cap: number) {
  let leases: Leases = {};
  const held = new Map<string, number>();
  return {
    held,
    renew(id: string, seconds: number, wanted = 100, kept = held.get(id) ?? 0) {
      const { next, ...allocated } = allocate(leases, id, { kept, wanted }, cap, seconds * 1000);
      leases = next;
      held.set(id, allocated.usableSlots);
      return allocated;
    },
  };
}

test("a single process gets the whole cap, however little it wants", () => {
  expect(openModel(4).renew("a", 0, 1)).toEqual({ slots: 4, usableSlots: 4, fairSlots: 4 });
});

test("a new process gets nothing until the first one has given back what exceeds the fair share of the first", () => {
  const { renew } = openModel(4);
  renew("a", 0);
  expect(renew("b", 1)).toMatchObject({ slots: 0, fairSlots: 2 });
  expect(renew("a", 2)).toMatchObject({ slots: 4, usableSlots: 2 });
  expect(renew("b", 2)).toMatchObject({ slots: 0 });
  expect(renew("a", 2)).toMatchObject({ slots: 2, usableSlots: 2 });
  expect(renew("b", 3)).toMatchObject({ slots: 2, usableSlots: 2 });
});

test("slots of calls in flight are given back only after the calls have ended", () => {
  const { renew } = openModel(4);
  renew("a", 0);
  renew("b", 1);
  renew("a", 2);
  expect(renew("a", 2, 100, 3)).toMatchObject({ slots: 3, usableSlots: 2 });
  expect(renew("b", 2)).toMatchObject({ slots: 1 });
  expect(renew("a", 3, 100, 2)).toMatchObject({ slots: 2 });
  expect(renew("b", 3)).toMatchObject({ slots: 2 });
});

test("a process that wants little leaves the rest to the other", () => {
  const { renew } = openModel(8);
  renew("a", 0);
  expect(renew("b", 1, 1)).toMatchObject({ slots: 0, fairSlots: 1 });
  renew("a", 2);
  expect(renew("a", 2)).toMatchObject({ slots: 7, usableSlots: 7 });
  expect(renew("b", 2, 1)).toMatchObject({ slots: 1 });
});

test("the slots of a process that does not renew are free after ten seconds", () => {
  const { renew } = openModel(4);
  renew("a", 0);
  expect(renew("b", 9.9)).toMatchObject({ slots: 0 });
  expect(renew("b", 10)).toMatchObject({ slots: 4 });
  // The first process wakes up.
  expect(renew("a", 11)).toMatchObject({ slots: 0 });
});

test("with more processes than slots each has one in turn", () => {
  const { renew, held } = openModel(2);
  const processes = ["a", "b", "c", "d", "e"];
  const seen = new Map(processes.map((id) => [id, [] as number[]]));
  for (let seconds = 0; seconds < 300; seconds += 0.5) {
    for (const id of processes) {
      renew(id, seconds);
      if ((held.get(id) ?? 0) > 0) seen.get(id)?.push(seconds);
    }
  }
  for (const moments of seen.values()) {
    const waits = [0, ...moments, 300].map((moment, i, all) => (all[i + 1] ?? moment) - moment);
    expect(Math.max(...waits)).toBeLessThan(50);
  }
});

test("the live slots never exceed the cap, and all of them are used when every process wants more", () => {
  const step = fc.record({
    process: fc.constantFrom("a", "b", "c", "d", "e", "f"),
    seconds: fc.double({ min: 0, max: 4, noNaN: true }),
    wanted: fc.integer({ min: 0, max: 12 }),
    started: fc.double({ min: 0, max: 1, noNaN: true }),
    isSuspended: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step, { maxLength: 60 }), (cap, steps) => {
      let seconds = 0;
      let leases: Leases = {};
      const states = new Map<string, { usable: number; inFlight: number; untilSeconds: number }>();
      const renew = (id: string, wanted: number, started: number) => {
        const state = states.get(id) ?? { usable: 0, inFlight: 0, untilSeconds: 0 };
        const isLive = state.untilSeconds > seconds;
        // Calls that started before the lease ended are over by now.
        const inFlight = isLive ? Math.max(Math.round(state.usable * started), state.inFlight - 1) : 0;
        const kept = isLive ? Math.max(state.usable, inFlight) : inFlight;
        const { next, usableSlots } = allocate(leases, id, { kept, wanted: wanted + inFlight }, cap, seconds * 1000);
        leases = next;
        states.set(id, { usable: usableSlots, inFlight, untilSeconds: seconds + 8 });
      };
      const inUse = () =>
        [...states.values()]
          .filter(({ untilSeconds }) => untilSeconds > seconds)
          .reduce((sum, { usable, inFlight }) => sum + Math.max(usable, inFlight), 0);
      for (const one of steps) {
        seconds += one.seconds;
        if (one.isSuspended) continue;
        renew(one.process, one.wanted, one.started);
        expect(inUse()).toBeLessThanOrEqual(cap);
      }
      const used: number[] = [];
      for (let round = 0; round < 60; round++) {
        seconds += 0.5;
        for (const id of ["a", "b", "c"]) renew(id, 100, 0);
        used.push(inUse());
      }
      expect(Math.max(...used)).toBeLessThanOrEqual(cap);
      // Slots are idle only while they change hands.
      expect(used.slice(-20).filter((slots) => slots === cap).length).toBeGreaterThan(10);
    }),
    { numRuns: 300 },
  );
});

test("a lease that was stored before the clock was set back ends ten seconds later at most", () => {
  const { renew } = openModel(4);
  renew("a", 100_000);
  expect(renew("b", 0)).toMatchObject({ slots: 0 });
  expect(renew("b", 10)).toMatchObject({ slots: 4 });
});

function connection(): Database {
  const opened = openPostgres(url);
  onTestFinished(() => opened.destroy());
  return opened;
}

test("processes that ask at the same moment get no more than the cap together", async () => {
  const limit = limitOf({ maxConcurrent: 7 });
  const connections = Array.from({ length: 6 }, connection);
  await Promise.all(connections.map((one) => pausedUntil(one, limit.service)));
  const shares = await Promise.all(
    connections.map((one) => renewLease(one, limit, randomUUID(), { kept: 0, wanted: 3 })),
  );
  expect(shares.reduce((sum, { slots }) => sum + slots, 0)).toBe(7);
});

test("a lease that is released is free at once, and the next call waits for the rate", async () => {
  const limit = limitOf({ requestsPerSecond: 2, maxConcurrent: 2 });
  const [first, second] = [randomUUID(), randomUUID()];
  expect(await renewLease(db, limit, first, { kept: 0, wanted: 1 })).toMatchObject({ slots: 2, startMs: 0 });
  await releaseLease(db, limit.service, first, 60_000);
  // At most the time between two calls with a single slot.
  expect(await renewLease(db, limit, second, { kept: 0, wanted: 1 })).toMatchObject({ slots: 2, startMs: 1000 });
});

test("a slot that a renewal gives back starts its next call when the rate allows it", async () => {
  const limit = limitOf({ requestsPerSecond: 1, maxConcurrent: 2 });
  const [first, second] = [randomUUID(), randomUUID()];
  await renewLease(db, limit, first, { kept: 0, wanted: 2 });
  await renewLease(db, limit, second, { kept: 0, wanted: 2 });
  await renewLease(db, limit, first, { kept: 1, wanted: 2, nextStartMs: 1_900 });
  const { slots, startMs } = await renewLease(db, limit, second, { kept: 0, wanted: 2 });
  expect(slots).toBe(1);
  expect(startMs).toBeGreaterThan(1_000);
});

test("after a process that never gave its slots back, the next call waits for the rate, however low that is", async () => {
  const limit = limitOf({ requestsPerSecond: 0.02, maxConcurrent: 2 });
  const [killed, next, last] = [randomUUID(), randomUUID(), randomUUID()];
  await renewLease(db, limit, killed, { kept: 0, wanted: 1 });
  const expired = sql`jsonb_set(leases, array[${killed}::text, 'untilMs'], to_jsonb(extract(epoch from now()) * 1000 - 1000))`;
  await sql`update usage_export.rate_limit set leases = ${expired} where service = ${limit.service}`.execute(db);
  // Its last call may have started right before its lease expired, and the next one may start 50 seconds later.
  const waits = [];
  for (const id of [next, last]) waits.push(await renewLease(db, limit, id, { kept: 0, wanted: 1 }));
  for (const { startMs } of waits) expect(startMs).toBeGreaterThan(40_000);
  for (const { startMs } of waits) expect(startMs).toBeLessThanOrEqual(50_000);
});

test("the leases of one service do not limit another service", async () => {
  await renewLease(db, limitOf(), randomUUID(), { kept: 0, wanted: 4 });
  expect(await renewLease(db, limitOf(), randomUUID(), { kept: 0, wanted: 4 })).toMatchObject({ slots: 4 });
});

test("every process sees the pause, a shorter one does not end a longer one, and a person ends it", async () => {
  const limit = limitOf();
  await pauseCalls(db, limit.service, 60_000);
  await pauseCalls(db, limit.service, 1_000);
  const { pauseMs } = await renewLease(connection(), limit, randomUUID(), { kept: 0, wanted: 1 });
  expect(pauseMs).toBeGreaterThan(50_000);
  expect(await resumeCalls(db, limit.service)).toBeInstanceOf(Date);
  expect(await renewLease(db, limit, randomUUID(), { kept: 0, wanted: 1 })).toMatchObject({ pauseMs: 0 });
  expect(await resumeCalls(db, limit.service)).toBeUndefined();
});

test("a clock that is set back does not lengthen a pause", async () => {
  const limit = limitOf();
  await pauseCalls(db, limit.service, 60_000);
  await sql`
    update usage_export.rate_limit set paused_until = paused_until + interval '1 day' where service = ${limit.service}
  `.execute(db);
  const { pauseMs } = await renewLease(db, limit, randomUUID(), { kept: 0, wanted: 1 });
  expect(pauseMs).toBeGreaterThan(50_000);
  expect(pauseMs).toBeLessThanOrEqual(60_000);
  expect((await pausedUntil(db, limit.service))?.getTime()).toBeLessThan(Date.now() + 61_000);
});

/** Stands for the service: records when each call began, and the highest number of calls at once. */
function openCallCounter() {
  const starts: number[] = [];
  let atOnce = 0;
  let atOnceMax = 0;
  return {
    starts,
    atOnceMax: () => atOnceMax,
    async call(ms: number) {
      starts.push(performance.now());
      atOnceMax = Math.max(atOnceMax, ++atOnce);
      await sleep(ms);
      atOnce--;
    },
  };
}

function openProcess(limit: ServiceLimit, part: Partial<RateLease> = {}): RateLimiter {
  const [own, id] = [connection(), randomUUID()];
  const lease: RateLease = {
    renew: (demand) => renewLease(own, limit, id, demand),
    reportPause: (ms) => pauseCalls(own, limit.service, ms),
    release: (nextStartMs) => releaseLease(own, limit.service, id, nextStartMs),
    ...part,
  };
  return openLeasedRateLimiter({ ...limit, waitMsMax: 60_000 }, lease, () => performance.now(), sleepUntil);
}

test("six processes that come and go never exceed the cap at once, nor the sum of rate and cap in any second", async () => {
  const limit = limitOf({ requestsPerSecond: 40, maxConcurrent: 5 });
  const counter = openCallCounter();
  const work = async (process: RateLimiter, calls: number) => {
    for (let i = 0; i < calls; i++) {
      const permit = await process.acquire(NEVER);
      await counter.call(20 + Math.random() * 100);
      permit.release();
    }
  };
  await Promise.all(
    Array.from({ length: 6 }, async (_, number) => {
      await sleep(number * 700);
      const process = openProcess(limit);
      await Promise.all(Array.from({ length: 6 }, () => work(process, 5)));
      await process.close();
    }),
  );
  expect(counter.starts).toHaveLength(180);
  expect(counter.atOnceMax()).toBeLessThanOrEqual(limit.maxConcurrent);
  const inSecond = counter.starts.map((from) => counter.starts.filter((ms) => ms >= from && ms < from + 1_000).length);
  expect(Math.max(...inSecond)).toBeLessThanOrEqual(limit.requestsPerSecond + limit.maxConcurrent);
  // The cap was used: five at once, at this rate, take 4.5 s.
  expect((counter.starts.at(-1) ?? 0) - (counter.starts[0] ?? 0)).toBeLessThan(40_000);
});

test("the slots of a process that never releases them go to another after ten seconds", {
  timeout: 40_000,
}, async () => {
  const limit = limitOf({ maxConcurrent: 2 });
  const killed = openProcess(limit, { renew: onlyOnce(limit) });
  await killed.acquire(NEVER);
  const startMs = performance.now();
  const next = openProcess(limit);
  const permit = await next.acquire(NEVER);
  expect(performance.now() - startMs).toBeGreaterThan(9_000);
  expect(permit.isValid()).toBe(true);
  await Promise.all([killed.close(), next.close()]);
});

/** Gives a lease once and then fails, as if the process had been killed. */
function onlyOnce(limit: ServiceLimit): RateLease["renew"] {
  const first = renewLease(db, limit, randomUUID(), { kept: 0, wanted: 1 });
  let isFirst = true;
  return () => {
    if (!isFirst) return Promise.reject(new Error("killed"));
    isFirst = false;
    return first;
  };
}
