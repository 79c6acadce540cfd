// A day that can't be read is notified once, and not every night.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { markDue } from "../../src/db/usage/series.ts";
import { daysBack, store, total } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { openNotifierFixture } from "./test-notifier.ts";

const { db } = await testDatabase();

// What another test left would have ended in each test.
beforeEach(async () => {
  await sql`truncate usage_export.configured, usage_export.notice, usage_export.series cascade`.execute(db);
});

async function storeRun(name: string, trigger: string, status: string, scheduled: boolean) {
  await sql`insert into usage_export.run (run_id, kind, job, trigger, status, started_at, finished_at, scheduled_for, error)
    values (${randomUUID()}, 'export', ${name}, ${trigger}, ${status}, clock_timestamp(), clock_timestamp(), ${scheduled ? sql`clock_timestamp()` : null}, 'refused')`.execute(
    db,
  );
}

test("a day that is always refused is notified once", async () => {
  await using fixture = await openNotifierFixture(db);
  const back = await daysBack(db);
  await markDue(db, [fixture.seriesId], { first: back(2), oldest: { start: back(2), end: back(1) }, through: back(1) });
  await store(db, fixture.seriesId, [total(back(1), { requests: "1" })], { grouping: "none" });
  await recordFailure(db, {
    seriesId: fixture.seriesId,
    days: [back(2)],
    fetchNo: await nextFetchNo(db),
    reason: "404",
  });
  for (let night = 0; night < 5; night++) {
    await storeRun(fixture.name, "schedule", "ok", true);
    await fixture.notifier().tick();
    await storeRun(fixture.name, "catchup", "failed", false);
    await fixture.notifier().tick();
  }
  expect(fixture.texts).toEqual([expect.stringMatching(/^Readings fail .* 1 day of 1 project could not be read/)]);
});

test.each([
  ["a catch-up run that reads all", "catchup", "ok", 2],
  ["a stopped run", "schedule", "stopped", 1],
  ["a backfill that failed", "backfill", "failed", 1],
  ["a scheduled run that was started late and failed", "catchup", "failed", 1],
])("the failure of a job and %s: %s %s", async (_, trigger, status, notifications) => {
  await using fixture = await openNotifierFixture(db);
  await storeRun(fixture.name, "schedule", "failed", true);
  await fixture.notifier().tick();
  await storeRun(fixture.name, trigger, status, trigger === "catchup");
  await fixture.notifier().tick();
  expect(fixture.texts).toEqual(
    [expect.stringMatching(/^Export .* failed in its run/), `Over: export ${fixture.name}.`].slice(0, notifications),
  );
});
