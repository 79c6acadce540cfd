// Somebody sets the database's clock to another time: nothing waits for a moment of the clock as it was.

import { expect } from "vitest";
import { setClock } from "../../support/clock-step.ts";
import { testDatabase } from "../../support/database.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, manyFilters, runs, runsOver, serveWorkers, workOnce } from "../workers.ts";
import { worldTest } from "../world.ts";

const database = await testDatabase();
const { db } = database;
const test = worldTest(database);

const SAID = /the database's clock went back/;
const reading = { groupings: ["none"], window: lastDays(2) };

/** Of the window only: a clock that was set has left days that it took for others. */
async function storedInWindow(): Promise<unknown> {
  const stored = await storedNumbers(db, reading);
  const { start, end } = reading.window;
  return Object.fromEntries(
    Object.entries(stored).map(([grouping, rows]) => [
      grouping,
      rows.filter(({ usage_date: day }) => String(day) >= start && String(day) <= end),
    ]),
  );
}

test("an export after one that was killed before the clock went back does not wait for its calls", async ({
  world,
}) => {
  const emulator = await world.serve();
  const held = Promise.withResolvers<void>();
  emulator.fault = ({ path }) => (path.includes("/breakdown") ? { kind: "hold", until: held.promise } : undefined);
  await world.configure(smallConfig(emulator.url, { service: { maxConcurrent: 1 } }));
  const killed = world.start(["export"]);
  await expect.poll(() => breakdowns(emulator).length, { timeout: 20_000, interval: 20 }).toBe(1);
  killed.kill("SIGKILL");
  await killed.ended;
  emulator.fault = undefined;
  held.resolve();

  await setClock(db, -1);
  const { status, stderr, durationMs } = await world.run(["export"]);
  expect(status).toBe(0);
  expect(stderr).toMatch(SAID);
  expect(stderr).toContain("calls to the service wait: others have all that may be under way at once");
  // The calls of the one that was killed have their places for ten seconds, whatever the clock shows.
  expect(durationMs).toBeLessThan(30_000);
  expect(await storedInWindow()).toEqual(await servedNumbers(emulator, world.key, reading));
}, 90_000);

test("a worker whose clock went back runs the night that is due by it, and says so once", async ({ world }) => {
  const emulator = await serveWorkers(world);
  await workOnce(world, db);
  await setClock(db, -1);
  const worker = world.start(["start"], { LOG_LEVEL: "debug" });
  expect(await runsOver(db, 2)).toMatchObject([{ status: "ok" }, { status: "ok", planned: 2, complete: 2 }]);
  await worker.waitFor("tick over");
  worker.kill("SIGTERM");
  const { stderr } = await worker.ended;
  expect(stderr.match(new RegExp(SAID, "g"))).toHaveLength(1);
  expect(await storedInWindow()).toEqual(await servedNumbers(emulator, world.key, reading));
  const again = world.start(["start"], { LOG_LEVEL: "debug" });
  await again.waitFor("tick over");
  again.kill("SIGTERM");
  expect((await again.ended).stderr).not.toMatch(SAID);
});

test("what the clock stored while it was ahead stands in the way of no night that comes", async ({ world }) => {
  const emulator = await serveWorkers(world);
  await workOnce(world, db);
  await setClock(db, 1);
  await workOnce(world, db);
  await setClock(db, -1);
  await workOnce(world, db);
  expect((await world.run(["status"])).stdout).not.toMatch(/missing: |failed: /);
  // The real next night.
  await setClock(db, 1);
  const asked = breakdowns(emulator).length;
  await workOnce(world, db);
  expect(breakdowns(emulator).length).toBeGreaterThan(asked);
  expect(await storedInWindow()).toEqual(await servedNumbers(emulator, world.key, reading));
}, 90_000);

test("the work of a worker that was killed before the clock went back is taken over as ever", async ({ world }) => {
  const emulator = await serveWorkers(world, { exports: [{ filters: manyFilters(20), checkFeatures: "off" }] });
  const held = Promise.withResolvers<void>();
  emulator.fault = ({ path }) => (path.includes("/breakdown") ? { kind: "hold", until: held.promise } : undefined);
  const killed = world.start(["start"]);
  await expect.poll(() => breakdowns(emulator).length, { timeout: 20_000, interval: 20 }).toBeGreaterThan(0);
  killed.kill("SIGKILL");
  await killed.ended;
  emulator.fault = undefined;
  held.resolve();

  await setClock(db, -1);
  const worker = world.start(["start"]);
  const ended = async () => (await runs(db)).filter(({ status, requests }) => status === "ok" && requests === 20);
  await expect.poll(async () => (await ended()).length, { timeout: 50_000, interval: 200 }).toBe(1);
  worker.kill("SIGTERM");
  expect((await worker.ended).stderr).toMatch(SAID);
}, 90_000);
