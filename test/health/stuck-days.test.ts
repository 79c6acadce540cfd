// A day that can't be read is notified once, and not every night.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { markDue } from "../../src/db/usage/series.ts";
import { daysBack, store, total } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { openNotifierFixture } from "./test-notifier.ts";

const { db } = await testDatabase();

async function storeRun(name: string, trigger: string, status: string, scheduled: boolean) {
  await sql`insert into usage_export.run (run_id, kind, job, trigger, status, started_at, finished_at, scheduled_for, error)
    values (${randomUUID()}, 'export', ${name}, ${trigger}, ${status}, clock_timestamp(), clock_timestamp(), ${scheduled ? sql`clock_timestamp()` : null}, 'refused')`.execute(
    db,
  );
}

test("a day that is always refused is notified once, as a gap", async () => {
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
  expect(fixture.texts).toEqual([expect.stringMatching(/has gaps: 1 slice/)]);
});

test("the failure of a job is resolved by a catch-up run that leaves no slice failed", async () => {
  await using fixture = await openNotifierFixture(db);
  await storeRun(fixture.name, "schedule", "failed", true);
  await fixture.notifier().tick();
  await storeRun(fixture.name, "catchup", "ok", false);
  await fixture.notifier().tick();
  expect(fixture.texts).toEqual([expect.stringMatching(/failed/), expect.stringMatching(/works again/)]);
});

test("the failure of a job is not resolved by a catch-up run that leaves a slice failed", async () => {
  await using fixture = await openNotifierFixture(db);
  const back = await daysBack(db);
  await recordFailure(db, {
    seriesId: fixture.seriesId,
    days: [back(2)],
    fetchNo: await nextFetchNo(db),
    reason: "404",
  });
  await storeRun(fixture.name, "schedule", "failed", true);
  await fixture.notifier().tick();
  await storeRun(fixture.name, "catchup", "ok", false);
  await fixture.notifier().tick();
  expect(fixture.texts).toHaveLength(1);
});

test("the failure of a scheduled run that was started late, as catchup, is notified", async () => {
  await using fixture = await openNotifierFixture(db);
  await storeRun(fixture.name, "catchup", "failed", true);
  await fixture.notifier().tick();
  expect(fixture.texts).toHaveLength(1);
});

test("a failed slice is notified as a gap even if its day was never due", async () => {
  await using fixture = await openNotifierFixture(db);
  const back = await daysBack(db);
  await recordFailure(db, {
    seriesId: fixture.seriesId,
    days: [back(40)],
    fetchNo: await nextFetchNo(db),
    reason: "404",
  });

  await fixture.notifier().tick();
  expect(fixture.texts).toEqual([expect.stringMatching(/0 missing, 1 failed/)]);
});
