// Which slices are read again, the status of each slice, and the causes of failures.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { inTransaction, queryOn, readAtOneMoment } from "../../../src/db/connection/transaction.ts";
import { dueSlices, settledSlices, sliceStatuses } from "../../../src/db/usage/due-slices.ts";
import { failureCauses } from "../../../src/db/usage/failures.ts";
import { newestGaps } from "../../../src/facts/coverage.ts";
import { isDueForRetry } from "../../../src/usage/export-plan.ts";
import { seriesKey } from "../../../src/usage/series.ts";
import type { FilterDoubt } from "../../../src/usage/slice-decision.ts";
import { testDatabase } from "../../support/database.ts";
import { sampleJob } from "../../usage/sample-request.ts";
import { DIARIZED, forgetAll } from "../reported-usage.ts";
import {
  configured,
  daysBack,
  failOn,
  makeDoubtsAnHourOlder,
  newProject,
  newSeries,
  register,
  setDue,
  store,
} from "../stored-usage.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);

/** A series of which the last four days are stored. With a window of two days, the two oldest are outside of it. */
async function seriesOfFourDays(part: { readonly windowDays?: number } = { windowDays: 2 }) {
  const usage = Object.fromEntries([4, 3, 2, 1].map((day) => [back(day), { listen: "5" }]));
  const one = await newSeries(db, "endpoint", { ...part, usage });
  await setDue(db, [one.seriesId], back(4), back(1));
  return one;
}

const dueOf = (seriesId: number) => inTransaction(db, (tx) => dueSlices(tx, [seriesId]));

test("a suspect day before the window is due until it is confirmed, unless the service ignores the filter", async () => {
  const { seriesId } = await seriesOfFourDays();
  const doubt: FilterDoubt = { kind: "filter-ignored", reason: "ignored", isConfirmable: false };
  await store(db, seriesId, { [back(3)]: { listen: "9" } }, { doubt });
  await store(db, seriesId, { [back(4)]: {}, [back(2)]: {} });
  expect(await dueOf(seriesId)).toMatchObject([
    { day: back(4), status: "suspect", attemptedAt: expect.any(Date), since: expect.any(Date) },
  ]);
  await makeDoubtsAnHourOlder(db);
  await store(db, seriesId, { [back(4)]: {} });
  expect(await dueOf(seriesId)).toEqual([]);
});

test("a suspect day that no window can request again is not due", async () => {
  const { seriesId } = await seriesOfFourDays({});
  await store(db, seriesId, { [back(4)]: {} });
  expect(await dueOf(seriesId)).toEqual([]);
});

test("a day that failed while the database's clock was two days ahead is due at once when the clock is right again", async () => {
  const { seriesId } = await seriesOfFourDays();
  await failOn(db, seriesId, [back(2)], { code: "unauthorized" });
  const startedAt = new Date(Date.now() - 60_000);
  const isDue = async () => (await dueOf(seriesId)).map((slice) => isDueForRetry(slice, new Date()));
  const settled = () =>
    settledSlices(db, [{ seriesIds: [seriesId], window: { start: back(2), end: back(2) }, fetchNo: 1e9, startedAt }]);
  expect([await isDue(), await settled()]).toMatchObject([[false], [[{ status: "failed" }]]]);

  await sql`
    update usage_export.slice set attempted_at = attempted_at + interval '2 days' where series_id = ${seriesId} and status = 'failed'
  `.execute(db);
  expect([await isDue(), await settled()]).toEqual([[true], [[]]]);
});

test("each series has the statuses of its slices in the range of days, even if it is no longer configured", async () => {
  const project = newProject();
  const all = [
    configured(project, "none"),
    configured(project, "model"),
    configured(project, "model", { filter: DIARIZED }),
    configured(newProject(), "model"),
  ];
  const [none, model, filtered, other] = await register(db, ...all);
  const days = ["2026-03-14", "2026-03-15", "2026-03-16", "2026-03-18"];
  await store(db, none ?? 0, Object.fromEntries(days.map((day) => [day, { requests: "1" }])));
  await store(db, none ?? 0, { "2026-03-16": {} });
  await failOn(db, none ?? 0, ["2026-03-17"]);
  await store(db, filtered ?? 0, { "2026-03-16": {} });
  await store(db, other ?? 0, { "2026-03-17": {} });
  await failOn(db, model ?? 0, ["2026-03-14"]);
  await register(db);

  const series = all.map(({ series }) => series);
  const known = await sliceStatuses(db, [{ job: sampleJob(), series }], { start: "2026-03-15", end: "2026-03-17" });

  expect(series.map((one) => known.get(seriesKey(one)))).toEqual([
    { "2026-03-15": "complete", "2026-03-16": "suspect", "2026-03-17": "failed" },
    undefined,
    { "2026-03-16": "complete" },
    { "2026-03-17": "complete" },
  ]);
});

test("gaps are listed from the newest", async () => {
  const usage = { "2026-03-12": { requests: "1" }, "2026-03-14": { requests: "5" } };
  const { project, seriesId } = await newSeries(db, "none", { usage });
  await store(db, seriesId, { "2026-03-12": {} });
  await failOn(db, seriesId, ["2026-03-15"]);
  await setDue(db, [seriesId], "2026-03-10", "2026-03-16");
  const { gaps } = await newestGaps(queryOn(db), [project.name]);
  const gap = { series: [{ project: project.name, source: "usage", grouping: "none", filter: "all" }] };
  expect(gaps).toEqual([
    { ...gap, status: "missing", from: "2026-03-16", to: "2026-03-16", error: null },
    { ...gap, status: "failed", from: "2026-03-15", to: "2026-03-15", error: "down" },
    { ...gap, status: "missing", from: "2026-03-13", to: "2026-03-13", error: null },
    { ...gap, status: "missing", from: "2026-03-10", to: "2026-03-11", error: null },
  ]);
});

const DAYS = ["2026-03-15", "2026-03-16"];

beforeEach(() => forgetAll(db));

async function twoProjects() {
  const [one, other] = [newProject(), newProject()];
  const [oneId, otherId] = await register(db, configured(one, "none"), configured(other, "none"));
  return { one, other, oneId, otherId };
}

const causes = () => readAtOneMoment(db, (tx) => failureCauses(tx));

test("an outage is one cause, whatever its error texts, with the number of its days and slices", async () => {
  const { oneId, otherId } = await twoProjects();
  await store(db, oneId, { "2026-03-15": { requests: "1" } });
  await failOn(db, oneId, DAYS, { reason: "connect ECONNREFUSED 127.0.0.1:1", code: "unavailable" });
  await failOn(db, oneId, DAYS, { reason: "the process that read it has ended" });
  await failOn(db, otherId, DAYS, { reason: "did not answer within 30 s", code: "unavailable" });
  const counts = { slices: 4, slicesWithNumbers: 1, days: 2, projects: 2 };
  expect(await causes()).toMatchObject([{ ...counts, code: "unavailable", error: "did not answer within 30 s" }]);
});

test("only refused keys are grouped by project", async () => {
  const { one, other, oneId, otherId } = await twoProjects();
  for (const [seriesId, day, code, reason] of [
    [oneId, "2026-03-15", "unauthorized", "the service answered 401: no (request id a)"],
    [otherId, "2026-03-15", "unauthorized", "not called again after a refusal"],
    [oneId, "2026-03-16", "rejected", "the service answered 400: what? (request id a)"],
    [otherId, "2026-03-16", "rejected", "the service answered 400: what? (request id b)"],
    [otherId, "2026-03-14", "bad_answer", "expected an array"],
  ] as const) {
    await failOn(db, seriesId, [day], { reason, code });
  }
  const grouped = (await causes()).map(({ code, project, slices }) => `${code} ${project} ${slices}`);
  const expected = [
    `unauthorized ${one.name} 1`,
    `unauthorized ${other.name} 1`,
    "rejected null 2",
    "bad_answer null 1",
  ];
  expect(grouped.sort()).toEqual(expected.sort());
});

test("a refusal of billing alone is a cause of its own", async () => {
  const project = newProject();
  const series = (["usage", "billing"] as const).map((source) => configured(project, "none", { source }));
  const [usage = 0, billing = 0] = await register(db, ...series);
  const refuse = (seriesId: number, days: readonly string[], reason: string) =>
    failOn(db, seriesId, days, { reason, code: "unauthorized" });
  const grouped = async () => (await causes()).map(({ isBillingRefused, slices }) => [isBillingRefused, slices]);
  await refuse(usage, DAYS, "the service answered 401: no");
  await refuse(billing, ["2026-03-15"], "the service answered 403: lacks billing:read");
  expect(await grouped()).toEqual([
    [false, 2],
    [true, 1],
  ]);
  await refuse(billing, ["2026-03-15"], "not called again after a refusal: the service answered 401: no");
  expect(await grouped()).toEqual([[false, 3]]);
});

test("a cause begins with the first failure after a good reading, not with the newest attempt", async () => {
  const { seriesId } = await newSeries(db, "none");
  await failOn(db, seriesId, DAYS);
  await read(sql`update usage_export.slice set failing_since = (usage_date + interval '25 hours') at time zone 'UTC'`);
  await failOn(db, seriesId, DAYS);
  expect(await causes()).toMatchObject([{ since: new Date("2026-03-16T01:00:00Z") }]);
  await store(db, seriesId, Object.fromEntries(DAYS.map((day) => [day, { requests: "1" }])));
  expect(await causes()).toEqual([]);
  await failOn(db, seriesId, ["2026-03-15"]);
  expect((await causes())[0]?.since.getTime()).toBeGreaterThan(Date.parse("2026-03-16T01:00:00Z"));
});

test("a slice is tried again if it is due and its series has a window", async () => {
  const { seriesId } = await newSeries(db);
  await failOn(db, seriesId, DAYS);
  expect(await causes()).toMatchObject([{ isRetried: false }]);
  await sql`
    update usage_export.series set window_days = 7, due_from = '2026-03-10', due_through = '2026-03-16', next_due_at = '2026-03-18'
  `.execute(db);
  expect(await causes()).toMatchObject([{ isRetried: true }]);
});
