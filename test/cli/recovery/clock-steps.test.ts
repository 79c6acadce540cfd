// The database's clock is set back or ahead: nothing waits until it reaches a time that was stored before.

import { expect } from "vitest";
import { setClock } from "../../support/clock-step.ts";
import { testDatabase } from "../../support/database.ts";
import { BUSY_MS } from "../../support/limits.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, manyFilters, runs, serveAndConfigure, waitForRuns, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const SAID = /the database's clock went back/;
const reading = { groupings: ["none"], window: lastDays(2) };

/** The stored numbers of the window only: before the clock was set, other days were stored. */
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

test("if an export is killed and then the clock goes back, the next export does not wait for calls of the killed one", async ({
  context,
}) => {
  const emulator = await context.serve();
  const held = Promise.withResolvers<void>();
  emulator.fault = ({ path }) => (path.includes("/breakdown") ? { kind: "hold", until: held.promise } : undefined);
  await context.configure(smallConfig(emulator.url, { service: { maxConcurrent: 1 } }));
  const killed = context.start(["export"]);
  await expect.poll(() => breakdowns(emulator).length).toBe(1);
  killed.kill("SIGKILL");
  await killed.ended;
  emulator.fault = undefined;
  held.resolve();

  await setClock(db, -1);
  const { status, stderr, durationMs } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(stderr).toMatch(SAID);
  // The lease of the killed process lasts for ten seconds, whatever the clock shows.
  expect(durationMs).toBeLessThan(30_000 + BUSY_MS);
  expect(await storedInWindow()).toEqual(await servedNumbers(emulator, context.key, reading));
});

test("a worker whose database's clock went back starts the run that is due by that clock, and logs the change once", async ({
  context,
}) => {
  const emulator = await serveAndConfigure(context);
  await workOnce(context, db);
  await setClock(db, -1);
  const worker = context.start(["start"], { LOG_LEVEL: "debug" });
  expect(await waitForRuns(db, 2)).toMatchObject([{ status: "ok" }, { status: "ok", planned: 2, complete: 2 }]);
  await worker.waitFor("tick finished");
  worker.kill("SIGTERM");
  const { stderr } = await worker.ended;
  expect(stderr.match(new RegExp(SAID, "g"))).toHaveLength(1);
  expect(await storedInWindow()).toEqual(await servedNumbers(emulator, context.key, reading));
  const again = context.start(["start"], { LOG_LEVEL: "debug" });
  await again.waitFor("tick finished");
  again.kill("SIGTERM");
  expect((await again.ended).stderr).not.toMatch(SAID);
});

test("times stored while the clock was ahead block no later scheduled run", async ({ context }) => {
  const emulator = await serveAndConfigure(context);
  await workOnce(context, db);
  await setClock(db, 1);
  await workOnce(context, db);
  await setClock(db, -1);
  await workOnce(context, db);
  expect((await context.run(["status"])).stdout).not.toMatch(/missing: |failed: /);
  // By the real clock it is now the next night.
  await setClock(db, 1);
  const asked = breakdowns(emulator).length;
  await workOnce(context, db);
  expect(breakdowns(emulator).length).toBeGreaterThan(asked);
  expect(await storedInWindow()).toEqual(await servedNumbers(emulator, context.key, reading));
});

test("if a worker is killed and then the clock goes back, another worker claims its jobs as usual", async ({
  context,
}) => {
  const emulator = await serveAndConfigure(context, { exports: [{ filters: manyFilters(20), checkFeatures: "off" }] });
  const held = Promise.withResolvers<void>();
  emulator.fault = ({ path }) => (path.includes("/breakdown") ? { kind: "hold", until: held.promise } : undefined);
  const killed = context.start(["start"]);
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(0);
  killed.kill("SIGKILL");
  await killed.ended;
  emulator.fault = undefined;
  held.resolve();

  await setClock(db, -1);
  const worker = context.start(["start"]);
  const ended = async () => (await runs(db)).filter(({ status, requests }) => status === "ok" && requests === 20);
  await expect.poll(async () => (await ended()).length).toBe(1);
  worker.kill("SIGTERM");
  expect((await worker.ended).stderr).toMatch(SAID);
});
