// Coverage, key statuses and the chargeback table, read from stored usage.

import { sql } from "kysely";
import { pino } from "pino";
import { beforeEach, expect, test } from "vitest";
import { queryAtOneMoment } from "../../src/db/connection/transaction.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { readAnswer } from "../../src/facts/amounts.ts";
import { CHARGED_BY, chargeback } from "../../src/facts/chargeback.ts";
import { coverage } from "../../src/facts/coverage.ts";
import { keyStatuses } from "../../src/facts/keys.ts";
import { openReadApi } from "../../src/web/api.ts";
import { newIntent, newKey, newRotation } from "../db/keys/written-ledger.ts";
import { forgetAll, storeSeries } from "../db/reported-usage.ts";
import { storeBills, sumOf } from "../db/stored-charges.ts";
import { daysBack, newProject, newSeries, nextFetchNo, rowOf, sliceOn, store } from "../db/stored-usage.ts";
import { readCsv } from "../show/read-csv.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const period = { start: back(4), end: back(1) };

beforeEach(() => forgetAll(db));

const read = (projects?: readonly string[]) => queryAtOneMoment(db, (run) => coverage(run, { period, projects }));

test("projects that lack the most come first", async () => {
  const [lacking, complete] = [newProject(), { ...newProject(), name: "a complete one" }];
  const usage = (days: readonly number[]) => Object.fromEntries(days.map((day) => [back(day), []]));
  const [seriesId = 0] = await storeSeries(db, [
    { project: lacking, grouping: "model", usage: usage([1]), due: period, windowDays: 1 },
    // This series is complete, but a project is only as fresh as its worst series.
    { project: lacking, grouping: "none", usage: usage([1, 2, 3, 4]), due: period, windowDays: 1 },
    { project: complete, grouping: "none", usage: usage([1, 2, 3, 4]), due: period, windowDays: 1 },
  ]);
  const failure = { seriesId, days: [back(2), back(1)], reason: "the service was away" };
  await recordFailure(db, { ...failure, fetchNo: await nextFetchNo(db) });
  const readings = sql<object>`select max(fetched_at) as "fetchedAt" from bi.coverage where project_id = ${lacking.id}`;
  const [newest] = (await readings.execute(db)).rows;

  const all = await read();
  const gap = { source: "usage", grouping: "model", filter: "all" };
  expect(all).toMatchObject({
    projectCount: 2,
    projects: [
      {
        ...{ projectId: lacking.id, freshThrough: null, ...newest },
        days: { [back(4)]: "missing", [back(3)]: "missing", [back(2)]: "missing", [back(1)]: "stale" },
        gaps: [
          { ...gap, quality: "stale", start: back(1), end: back(1), error: "the service was away" },
          { ...gap, quality: "missing", start: back(2), end: back(2), error: "the service was away" },
          { ...gap, quality: "missing", start: back(4), end: back(3), error: null },
        ],
      },
      { projectId: complete.id, freshThrough: back(1), gaps: [] },
    ],
    undated: [],
  });
  expect(await read([complete.id])).toMatchObject({ projectCount: 1, projects: [{ projectId: complete.id }] });
  await expect(read(["nobody"])).rejects.toThrow('project: no usage of a project "nobody" was ever exported');
});

test("a key was last used on the newest day that still shows requests by it, as bi.api_keys says too", async () => {
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
    return store(db, seriesId, [sliceOn(day, rows)], { grouping: "accessor" });
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

const OCTOBER = { start: "2026-10-01", end: "2026-10-31" };

/** Stores usage and charges of October, and usage of the days around it. A double can't hold the largest number of hours. */
async function storeOctober() {
  await forgetAll(db);
  const [one, other] = [newProject(), newProject()];
  const due = { start: "2026-09-30", end: "2026-11-01" };
  const usage = {
    "2026-09-30": [["key-1", { hours: "100", requests: "1" }]],
    "2026-10-01": [
      ["key-1", { hours: "0.1", requests: "3" }],
      ["key-2", { hours: "0.2" }],
      [null, { hours: "7" }],
    ],
    "2026-10-31": [["key-1", { hours: "9007199254740993" }]],
    "2026-11-01": [["key-1", { hours: "100" }]],
  } as const;
  const totals = {
    "2026-10-01": [[null, { hours: "7.3", requests: "3" }]],
    "2026-10-31": [[null, { hours: "9007199254740993" }]],
  } as const;
  for (const project of [one, other])
    await storeSeries(db, [
      { project, grouping: "accessor", usage, due, windowDays: 1 },
      { project, grouping: "none", usage: totals, due, windowDays: 1 },
    ]);
  const charge = { accessor: "key-1", deployment: null, line_item: "streaming", tags: null };
  await storeBills(db, one, ["none", "accessor"], OCTOBER, [
    { ...charge, day: "2026-10-02", dollars: "1.005" },
    { ...charge, day: "2026-10-03", accessor: "key-2", dollars: "2.25" },
  ]);
  return [one, other];
}

test.each(CHARGED_BY)("the chargeback by %s of a month adds up exactly to the month's totals", async (by) => {
  const [one] = await storeOctober();
  const charges = await queryAtOneMoment(db, (run) => chargeback(run, { period: OCTOBER, projects: undefined, by }));
  const metrics = Map.groupBy(charges, ({ metric }) => metric);
  expect([...metrics.keys()].sort()).toEqual(["billed_cost", "hours", "requests"]);
  for (const [metric, rows] of metrics) {
    const unset = { before: undefined, projects: undefined, currency: undefined, filter: undefined, group: undefined };
    const question = { ...unset, period: OCTOBER, metric, grouping: by, limit: 100, sort: "amount" } as const;
    const { total } = await queryAtOneMoment(db, (run) => readAnswer(run, question));
    expect(sumOf(rows.map(({ amount }) => amount))).toBe(total?.amount);
    expect(new Set(rows.map((row) => row.total))).toEqual(new Set([total?.amount]));
  }
  const hours = charges.filter(({ metric, projectId }) => metric === "hours" && projectId === one?.id);
  expect(hours.map(({ group, amount }) => [group, amount])).toEqual(
    by === "project"
      ? [[null, "9007199254741000.3"]]
      : [
          ["key-1", "9007199254740993.1"],
          [null, "7"],
          ["key-2", "0.2"],
        ],
  );
});

test("the chargeback CSV has the days and the project that are requested", async () => {
  const [one, other] = await storeOctober();
  const log = pino({ enabled: false });
  const api = openReadApi({ log, version: "1", queryAtOneMoment: (read) => queryAtOneMoment(db, read) });
  const response = await api.request("/api/v1/chargeback.csv?from=2026-10-01&to=2026-10-31");
  expect(response.headers.get("content-disposition")).toContain("chargeback-by-project-2026-10-01-2026-10-31.csv");
  const csv = readCsv((await response.text()).replace("\ufeff", ""));
  const [titles, ...rows] = csv.map((row) => row.map(({ text }) => text));
  const header = "from,to,project_id,project,api_key,metric,quantity,estimated,billed,currency,share,complete";
  expect(titles?.join()).toBe(header);
  const complete = rows.map((row) => `${row[5]} ${row[11]}`);
  expect(complete).toEqual(expect.arrayContaining(["hours false", "billed_cost true"]));
  expect(new Set(rows.map((row) => row[2]))).toEqual(new Set([one?.id, other?.id]));
  const ofOther = await api.request(`/api/v1/chargeback.csv?from=2026-10-01&to=2026-10-31&project=${other?.id}`);
  const rowsOfOther = readCsv(await ofOther.text()).slice(1);
  expect(new Set(rowsOfOther.map((row) => row[2]?.text))).toEqual(new Set([other?.id]));
  expect((await api.request("/api/v1/chargeback.csv?from=2999-01-01&to=2999-01-31")).status).toBe(400);
  const lastMonth = await api.request("/api/v1/chargeback.csv");
  const file = /-by-project-\d{4}-\d\d-01-\d{4}-\d\d-(28|29|30|31)\.csv/;
  expect(lastMonth.headers.get("content-disposition")).toMatch(file);
});
