import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { readSnapshot } from "../../../src/db/connection/transaction.ts";
import { failureCauses, recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { testDatabase } from "../../support/database.ts";
import { configured, newProject, newSeries, store, total } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAYS = ["2026-03-15", "2026-03-16"];

beforeEach(() => sql`truncate usage_export.configured, usage_export.series, usage_export.slice cascade`.execute(db));

async function fail(seriesId: number, reason: string, code: string, days: readonly string[] = DAYS): Promise<void> {
  await recordFailure(db, { seriesId, days, fetchNo: await nextFetchNo(db), reason, code });
}

async function twoProjects() {
  const [one, other] = [newProject(), newProject()];
  const series = [configured(one, "none"), configured(other, "none")];
  const ids = await registerSeries(db, series);
  const [oneId, otherId] = series.map((each) => seriesIdOf(ids, each.series));
  return [
    { project: one, seriesId: oneId ?? 0 },
    { project: other, seriesId: otherId ?? 0 },
  ] as const;
}

const causes = () => readSnapshot(db, (tx) => failureCauses(tx));

test("an outage is one cause, whatever its error texts, with the number of its days and slices", async () => {
  const [one, other] = await twoProjects();
  await store(db, one.seriesId, [total("2026-03-15", { requests: "1" })], { grouping: "none" });
  await fail(one.seriesId, "connect ECONNREFUSED 127.0.0.1:1", "unavailable");
  await fail(other.seriesId, "did not answer within 30 s", "unavailable");
  expect(await causes()).toMatchObject([
    {
      code: "unavailable",
      slices: 4,
      slicesWithNumbers: 1,
      days: 2,
      projects: 2,
      error: "did not answer within 30 s",
    },
  ]);
});

test("refused keys are grouped by project, and other failures by their text without the request's id", async () => {
  const [one, other] = await twoProjects();
  await fail(one.seriesId, "the service answered 401: no (request id a)", "unauthorized", ["2026-03-15"]);
  await fail(other.seriesId, "not called again after a refusal", "unauthorized", ["2026-03-15"]);
  await fail(one.seriesId, "the service answered 400: what? (request id a)", "rejected", ["2026-03-16"]);
  await fail(other.seriesId, "the service answered 400: what? (request id b)", "rejected", ["2026-03-16"]);
  await fail(other.seriesId, "expected an array", "bad_answer", ["2026-03-14"]);
  const grouped = (await causes()).map(({ code, project, slices }) => [code, project, slices]);
  expect(grouped).toHaveLength(4);
  expect(grouped).toEqual(
    expect.arrayContaining([
      ["unauthorized", one.project.name, 1],
      ["unauthorized", other.project.name, 1],
      ["rejected", null, 2],
      ["bad_answer", null, 1],
    ]),
  );
});

test("a refusal of billing is another cause than one of usage, and a refused key is one cause of both", async () => {
  const project = newProject();
  const series = [configured(project, "none"), configured(project, "none", { source: "billing" })];
  const ids = await registerSeries(db, series);
  const [usage = 0, billing = 0] = series.map((each) => seriesIdOf(ids, each.series));
  const grouped = async () => (await causes()).map(({ isBillingRefused, slices }) => [isBillingRefused, slices]);
  await fail(usage, "the service answered 401: no", "unauthorized");
  await fail(billing, "the service answered 403: lacks billing:read", "unauthorized", ["2026-03-15"]);
  expect(await grouped()).toEqual([
    [false, 2],
    [true, 1],
  ]);
  await fail(billing, "not called again after a refusal: the service answered 401: no", "unauthorized", ["2026-03-15"]);
  expect(await grouped()).toEqual([[false, 3]]);
});

test("a cause lasts since the first failure after a good reading, not since the newest attempt", async () => {
  const { seriesId } = await newSeries(db, "none");
  const day = ["2026-03-15"];
  await fail(seriesId, "down", "unavailable", day);
  await sql`update usage_export.slice set failing_since = '2026-03-16T01:00:00Z'`.execute(db);
  await fail(seriesId, "still down", "unavailable", day);
  expect(await causes()).toMatchObject([{ since: new Date("2026-03-16T01:00:00Z") }]);
  await store(db, seriesId, [total("2026-03-15", { requests: "1" })], { grouping: "none" });
  expect(await causes()).toEqual([]);
  await fail(seriesId, "down again", "unavailable", day);
  expect((await causes())[0]?.since.getTime()).toBeGreaterThan(Date.parse("2026-03-16T01:00:00Z"));
});

test("a slice is tried again if it is due and its series has a window", async () => {
  const { seriesId } = await newSeries(db);
  await fail(seriesId, "down", "unavailable");
  expect(await causes()).toMatchObject([{ isRetried: false }]);
  await sql`
    update usage_export.series set window_days = 7, due_from = '2026-03-10', due_through = '2026-03-16', next_due_at = '2026-03-18'
  `.execute(db);
  expect(await causes()).toMatchObject([{ isRetried: true }]);
});
