// What the page on the quality of the data reads, compared with what is stored.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { readByStatements } from "../../src/db/connection/transaction.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { coverage } from "../../src/facts/coverage.ts";
import { keyStatuses } from "../../src/facts/keys.ts";
import { newIntent, newKey, newRotation } from "../db/keys/written-ledger.ts";
import { forgetAll, storeSeries } from "../db/reported-usage.ts";
import { daysBack, newProject, newSeries, nextFetchNo, rowOf, rowsOn, store } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const period = { start: back(4), end: back(1) };

beforeEach(() => forgetAll(db));

const read = (projects?: readonly string[]) => readByStatements(db, (run) => coverage(run, { period, projects }));

test("the projects that lack the most come first, with the state of each day: old numbers are told from none", async () => {
  const [bad, good] = [newProject(), { ...newProject(), name: "a good one" }];
  const usage = (days: readonly number[]) => Object.fromEntries(days.map((day) => [back(day), []]));
  const [seriesId = 0] = await storeSeries(db, [
    { project: bad, grouping: "model", usage: usage([1]), due: period, windowDays: 1 },
    // Its days count for nothing: a project is fresh as far as its worst series is.
    { project: bad, grouping: "none", usage: usage([1, 2, 3, 4]), due: period, windowDays: 1 },
    { project: good, grouping: "none", usage: usage([1, 2, 3, 4]), due: period, windowDays: 1 },
  ]);
  const failure = { seriesId, days: [back(2), back(1)], reason: "the service was away" };
  await recordFailure(db, { ...failure, fetchNo: await nextFetchNo(db) });
  const readings = sql<object>`select max(fetched_at) as "fetchedAt" from bi.coverage where project_id = ${bad.id}`;
  const [newest] = (await readings.execute(db)).rows;

  const all = await read();
  const gap = { source: "usage", grouping: "model", filter: "all" };
  expect(all).toMatchObject({
    projectCount: 2,
    projects: [
      {
        ...{ projectId: bad.id, freshThrough: null, ...newest },
        days: { [back(4)]: "missing", [back(3)]: "missing", [back(2)]: "missing", [back(1)]: "stale" },
        gaps: [
          { ...gap, quality: "stale", start: back(1), end: back(1), error: "the service was away" },
          { ...gap, quality: "missing", start: back(2), end: back(2), error: "the service was away" },
          { ...gap, quality: "missing", start: back(4), end: back(3), error: null },
        ],
      },
      { projectId: good.id, freshThrough: back(1), gaps: [] },
    ],
    undated: [],
  });
  expect(await read([good.id])).toMatchObject({ projectCount: 1, projects: [{ projectId: good.id }] });
  await expect(read(["nobody"])).rejects.toThrow('project: no usage of a project "nobody" was ever exported');
});

test("a key's last use is the newest day for which requests by it are still stored, as in bi.api_keys", async () => {
  const project = newProject();
  const { job, recordKey } = await newRotation(db, { project });
  const [used, gone, never] = [newIntent(), newIntent(), newIntent()];
  for (const intentId of [used, gone, never]) await recordKey(intentId, "active");
  const ids = new Map([used, gone, never].map((intentId) => [intentId, newKey(intentId).apiKeyId]));

  const { seriesId } = await newSeries(db, "accessor", { project });
  const usage = (day: string, requests: Readonly<Record<string, string>>) => {
    const rows = Object.entries(requests).map(([intent, count]) =>
      rowOf(ids.get(intent) ?? "", count, null, "accessor"),
    );
    return store(db, seriesId, [rowsOn(day, rows)], { grouping: "accessor" });
  };
  await usage("2026-03-10", { [used]: "1", [gone]: "1" });
  await usage("2026-03-11", { [used]: "1", [gone]: "1" });
  // The newest answer of this day no longer has the second key.
  await usage("2026-03-11", { [used]: "1" });
  await usage("2026-03-12", { [used]: "0" });

  const rows = (await keyStatuses(db)).filter(({ rotation }) => rotation === job.name);
  expect(new Map(rows.map(({ intentId, lastSeenInUse }) => [intentId, lastSeenInUse]))).toEqual(
    new Map([
      [used, "2026-03-11"],
      [gone, "2026-03-10"],
      [never, null],
    ]),
  );
  const { rows: viewed } = await sql`
    select api_key_id as "apiKeyId", state, comment, floor(age_days)::integer as "ageDays",
      last_seen_in_use as "lastSeenInUse", due_for_removal_at as "dueForRemovalAt"
    from bi.api_keys where rotation = ${job.name} and state <> 'retired' order by requested_at desc
  `.execute(db);
  expect(rows).toMatchObject(viewed);
});
