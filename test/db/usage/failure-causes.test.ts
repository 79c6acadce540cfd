import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { readSnapshot } from "../../../src/db/connection/transaction.ts";
import { failureCauses } from "../../../src/db/usage/failures.ts";
import { testDatabase } from "../../support/database.ts";
import { forgetAll } from "../reported-usage.ts";
import { configured, fail, newProject, newSeries, register, store } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAYS = ["2026-03-15", "2026-03-16"];

beforeEach(() => forgetAll(db));

async function twoProjects() {
  const [one, other] = [newProject(), newProject()];
  const [oneId, otherId] = await register(db, configured(one, "none"), configured(other, "none"));
  return { one, other, oneId, otherId };
}

const causes = () => readSnapshot(db, (tx) => failureCauses(tx));

test("an outage is one cause, whatever its error texts, with the number of its days and slices", async () => {
  const { oneId, otherId } = await twoProjects();
  await store(db, oneId, { "2026-03-15": { requests: "1" } });
  await fail(db, oneId, DAYS, { reason: "connect ECONNREFUSED 127.0.0.1:1", code: "unavailable" });
  await fail(db, otherId, DAYS, { reason: "did not answer within 30 s", code: "unavailable" });
  const counts = { slices: 4, slicesWithNumbers: 1, days: 2, projects: 2 };
  expect(await causes()).toMatchObject([{ ...counts, code: "unavailable", error: "did not answer within 30 s" }]);
});

test("refused keys are grouped by project, and other failures by their text without the request's id", async () => {
  const { one, other, oneId, otherId } = await twoProjects();
  for (const [seriesId, day, code, reason] of [
    [oneId, "2026-03-15", "unauthorized", "the service answered 401: no (request id a)"],
    [otherId, "2026-03-15", "unauthorized", "not called again after a refusal"],
    [oneId, "2026-03-16", "rejected", "the service answered 400: what? (request id a)"],
    [otherId, "2026-03-16", "rejected", "the service answered 400: what? (request id b)"],
    [otherId, "2026-03-14", "bad_answer", "expected an array"],
  ] as const) {
    await fail(db, seriesId, [day], { reason, code });
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

test("a refusal of billing is another cause than one of usage, and a refused key is one cause of both", async () => {
  const project = newProject();
  const series = (["usage", "billing"] as const).map((source) => configured(project, "none", { source }));
  const [usage = 0, billing = 0] = await register(db, ...series);
  const refuse = (seriesId: number, days: readonly string[], reason: string) =>
    fail(db, seriesId, days, { reason, code: "unauthorized" });
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

test("a cause lasts since the first failure after a good reading, not since the newest attempt", async () => {
  const { seriesId } = await newSeries(db, "none");
  await fail(db, seriesId, ["2026-03-15"]);
  await sql`update usage_export.slice set failing_since = '2026-03-16T01:00:00Z'`.execute(db);
  await fail(db, seriesId, ["2026-03-15"]);
  expect(await causes()).toMatchObject([{ since: new Date("2026-03-16T01:00:00Z") }]);
  await store(db, seriesId, { "2026-03-15": { requests: "1" } });
  expect(await causes()).toEqual([]);
  await fail(db, seriesId, ["2026-03-15"]);
  expect((await causes())[0]?.since.getTime()).toBeGreaterThan(Date.parse("2026-03-16T01:00:00Z"));
});

test("a slice is tried again if it is due and its series has a window", async () => {
  const { seriesId } = await newSeries(db);
  await fail(db, seriesId, DAYS);
  expect(await causes()).toMatchObject([{ isRetried: false }]);
  await sql`
    update usage_export.series set window_days = 7, due_from = '2026-03-10', due_through = '2026-03-16', next_due_at = '2026-03-18'
  `.execute(db);
  expect(await causes()).toMatchObject([{ isRetried: true }]);
});
