// How processes that use the same database share the caps of the service: calls per second, and calls at once (slots).

import fc from "fast-check";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { LIVE_MS, storeCallPause, storedCallPauses } from "../src/db/calling-processes.ts";
import { openPostgres } from "../src/db/connection/database.ts";
import { fairSlots, sharedLimiter } from "../src/open-service.ts";
import { testDatabase } from "./support/database.ts";
import { WAIT_MS_MAX } from "./support/limits.ts";

const database = await testDatabase();
const hangSignal = () => AbortSignal.timeout(WAIT_MS_MAX);
const CALLER = { key: "env KEY", project: "p1", waitMsMax: 60_000 };

function openLimiter(maxConcurrent = 2, requestsPerSecond = 1_000) {
  const db = openPostgres(database.url);
  const limiter = sharedLimiter(db, { requestsPerSecond, maxConcurrent }, pino({ enabled: false }));
  const close = async () => {
    await limiter.releaseSlots();
    await db.destroy();
  };
  return { db, limiter, [Symbol.asyncDispose]: close };
}

type Announced = { readonly id: string; readonly at: Date };

/** Waits until each process has announced its slots six times, and so has acted on what the others announced. */
async function waitForAnnouncements(...processes: readonly ReturnType<typeof openLimiter>[]): Promise<void> {
  const times = new Map<string, Set<number>>();
  const countSettled = async () => {
    // Wakes a process with a call in flight, so that it announces at once.
    for (const { limiter } of processes) await limiter.releaseSlots();
    const stored = sql<Announced>`select process_id as id, seen_at as at from usage_export.calling_process`;
    for (const { id, at } of await database.read(stored)) times.set(id, (times.get(id) ?? new Set()).add(at.getTime()));
    return [...times.values()].filter(({ size }) => size >= 6).length;
  };
  await expect.poll(countSettled).toBe(processes.length);
}

test("the slots of the cap go to every process in turn", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1, max: 70 }), (maxConcurrent, count) => {
      const ids = Array.from({ length: count }, (_, i) => `p${i}`);
      const caps = { maxConcurrent, requestsPerSecond: 1_000 };
      // A turn lasts 10 s plus the time of three calls per slot, which is 3 ms per slot at 1,000 requests a second.
      const turnMs = 10_000 + 3 * maxConcurrent;
      const turns = Array.from({ length: count }, (_, turn) =>
        ids.map((id) => fairSlots(ids, id, caps, 1 + turn * turnMs)),
      );
      for (const slots of turns) expect(slots.reduce((sum, one) => sum + one, 0)).toBe(maxConcurrent);
      for (const i of ids.keys()) expect(turns.some((slots) => (slots[i] ?? 0) > 0)).toBe(true);
    }),
  );
});

test("a slot that one process uses is not given to another until the call has ended", async () => {
  await using first = openLimiter();
  await using second = openLimiter();
  const held = [await first.limiter.acquire(CALLER, hangSignal()), await first.limiter.acquire(CALLER, hangSignal())];
  const order: string[] = [];
  const waits = second.limiter.acquire(CALLER, hangSignal()).then((permit) => {
    order.push("second");
    permit.release();
  });
  // If the second process got a slot too early, `waits` would end first.
  await Promise.race([waitForAnnouncements(first, second), waits]);
  order.push("first ends one");
  held[0]?.release();
  await waits;
  held[1]?.release();
  expect(order).toEqual(["first ends one", "second"]);
});

test("a process that can't renew its share stops calling before the others count it as gone", async () => {
  const { db, limiter } = openLimiter();
  const permit = await limiter.acquire(CALLER, hangSignal());
  expect(permit.isValid()).toBe(true);
  await db.destroy();
  const later = performance.now() + LIVE_MS - 1_000;
  vi.spyOn(performance, "now").mockReturnValue(later);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(permit.isValid()).toBe(false);
  permit.release();
  await expect(limiter.acquire(CALLER, hangSignal())).rejects.toThrow(/destroy|closed|end/i);
  // Without this, the next tests would wait until the process counts as gone.
  await sql`delete from usage_export.calling_process`.execute(database.db);
});

test("if the service asks one process to pause a key, the others pause calls with that key only", async () => {
  await using first = openLimiter();
  await using second = openLimiter();
  // A process reads the pauses of the others only while it has a call in flight.
  const calling = await second.limiter.acquire({ ...CALLER, key: "env OTHER" }, hangSignal());
  first.limiter.pause(CALLER.key, 60_000);
  await first.limiter.releaseSlots();
  expect((await storedCallPauses(database.db)).map(({ key }) => key)).toContain(CALLER.key);
  await expect.poll(() => second.limiter.pausedMs(CALLER.key)).toBeGreaterThan(50_000);
  expect(second.limiter.pausedMs("env OTHER")).toBe(0);
  await expect(second.limiter.acquire({ ...CALLER, waitMsMax: 1_000 }, hangSignal())).rejects.toThrow("again in");
  expect(calling.isValid()).toBe(true);
  calling.release();
});

test("a later, shorter pause does not end a longer one", async () => {
  for (const ms of [60_000, 1_000]) await storeCallPause(database.db, "env LONG", ms);
  const pause = (await storedCallPauses(database.db)).find(({ key }) => key === "env LONG");
  expect(Number(pause?.until) - Date.now()).toBeGreaterThan(50_000);
});
