// The report adds rows up by itself and reads the days of series past bi.coverage, to be fast. After random answers, empty answers,
// failures and changes of the configuration it must show what the views show.

import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { readReportData } from "../../../src/db/report/report.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { markDue, registerSeries } from "../../../src/db/usage/series.ts";
import type { Filter, Grouping, Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { configured, daysBack, makeDoubtsAnHourOlder, newProject } from "../stored-usage.ts";
import { DIARIZED, forgetAll, storeSeries, storeUsage } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const [before, period] = [
  { start: back(6), end: back(4) },
  { start: back(3), end: back(1) },
];

const GROUPINGS: readonly Grouping[] = ["none", "model", "accessor", "tags"];
const SERIES = GROUPINGS.length * 2 + 1;

const aStep = fc.record({
  kind: fc.constantFrom("answer", "answer", "answer", "answer", "read early", "failure", "an hour passes"),
  series: fc.nat(SERIES - 1),
  day: fc.constantFrom(1, 1, 2, 2, 3, 4, 6),
  rows: fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("0.1", "1.10", "2", "9007199254740993"), {
    maxKeys: 3,
    noNullPrototype: true,
  }),
});
type Step = typeof aStep extends fc.Arbitrary<infer Value> ? Value : never;
type SeriesPart = { readonly project: Project; readonly grouping: Grouping; readonly filter?: Filter };

test("after any sequence of readings the report has the numbers and statuses of the views", async () => {
  const configuration = fc.record({
    steps: fc.array(aStep, { minLength: 30, maxLength: 60 }),
    due: fc.boolean(),
    kept: fc.subarray([0, 1, 2, 3, 4, 5, 6, 7, 8], { minLength: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(configuration, async ({ steps, due, kept }) => {
      await forgetAll(db);
      const [one, other] = [newProject(), newProject()];
      const all: readonly SeriesPart[] = [
        ...GROUPINGS.flatMap((grouping) => [one, other].map((project) => ({ project, grouping }))),
        { project: one, grouping: "model", filter: DIARIZED },
      ];
      const ids = await storeSeries(db, all);
      if (due) await markDue(db, ids, { first: back(5), oldest: { start: back(5), end: back(1) }, through: back(1) });
      for (const step of steps) await take(step, ids, all);
      await registerSeries(
        db,
        kept.flatMap((i) => (all[i] ? [configured(all[i].project, all[i].grouping, all[i])] : [])),
      );
      await expectReportOfViews();
    }),
    { numRuns: 15, endOnFailure: true },
  );
});

async function take(step: Step, ids: readonly number[], all: readonly SeriesPart[]) {
  const [seriesId, grouping, day] = [ids[step.series] ?? 0, all[step.series]?.grouping ?? "none", back(step.day)];
  if (step.kind === "an hour passes") return await makeDoubtsAnHourOlder(db);
  if (step.kind === "failure")
    return await recordFailure(db, { seriesId, days: [day], reason: "away", fetchNo: await nextFetchNo(db) });
  const rows = Object.entries(step.rows).map(
    ([group, hours]) =>
      [grouping === "tags" ? [group] : group, { hours, requests: hours.split(".")[0] ?? "" }] as const,
  );
  await storeUsage(db, seriesId, grouping, { [day]: grouping === "none" ? rows.slice(0, 1) : rows });
  if (step.kind === "read early")
    await sql`
      update usage_export.slice set closed_at = null where series_id = ${seriesId} and usage_date = ${day}::date
    `.execute(db);
}

async function expectReportOfViews(): Promise<void> {
  const report = await readReportData(db, period, new Date(0));
  const sources = report.totals.sources.filter(({ grouping }) => grouping === "none").map(({ project }) => project);
  if (sources.length === report.totals.sources.length) {
    const [hours] = report.totals.metrics;
    expect([hours?.amount, hours?.before]).toEqual([
      await sumOf("usage_total", sources, period),
      await sumOf("usage_total", sources, before),
    ]);
  }
  for (const { grouping, projects, groups, rest, days } of report.breakdowns) {
    const { rows } = await sql`
      select distinct model from bi.usage_by_model
      where project = any(${projects}::text[]) and usage_date between ${period.start}::date and ${period.end}::date
    `.execute(db);
    expect(grouping).toBe("model");
    expect(rest).toBeUndefined();
    expect(groups.length).toBe(rows.length);
    for (const { group, hours } of groups) expect(await daysOfModel(group, projects, days)).toEqual(hours);
  }
  for (const { grouping, projects, groups } of report.rankings) {
    const view = grouping === "accessor" ? "usage_by_key" : "usage_by_tags";
    for (const { project, group, hours, hoursBefore } of groups) {
      const of = sql`and ${sql.ref(grouping === "accessor" ? "lineage" : "tags")} = ${group}`;
      expect([hours, hoursBefore]).toEqual([
        await sumOf(view, [project], period, of),
        await sumOf(view, [project], before, of),
      ]);
      expect(projects).toContain(project);
    }
  }
  for (const { project, grouping, filter, statuses, freshThrough } of report.coverage.series) {
    const { rows } = await sql<{ usage_date: string; status: string }>`
      select usage_date, status from bi.coverage
      where project = ${project} and "grouping" = ${grouping} and filter = ${filter}
        and usage_date between ${period.start}::date and ${period.end}::date
    `.execute(db);
    const shown = new Map(rows.map(({ usage_date, status }) => [usage_date, status]));
    expect(statuses).toEqual(report.coverage.days.map((day) => shown.get(day)));
    expect(freshThrough).toBe(await freshThroughOf(project, grouping, filter));
  }
}

async function sumOf(view: string, projects: readonly string[], { start, end }: typeof period, and = sql``) {
  const { rows } = await sql<{ hours: string | null }>`
    select trim_scale(sum(hours))::text as hours from ${sql.id("bi", view)}
    where project = any(${projects}::text[]) and usage_date between ${start}::date and ${end}::date ${and}
  `.execute(db);
  return rows[0]?.hours ?? null;
}

async function daysOfModel(model: string | null, projects: readonly string[], days: readonly string[]) {
  const of = (day: string) =>
    sumOf("usage_by_model", projects, { start: day, end: day }, sql`and model is not distinct from ${model}`);
  return Promise.all(days.map(async (day) => (await of(day)) ?? "0"));
}

/** By the definition: the day before the first due day that is missing or was never read. Null if there is no such day. */
async function freshThroughOf(project: string, grouping: string, filter: string): Promise<string | null> {
  const { rows } = await sql<{ fresh: string | null }>`
    select nullif(coalesce(min(c.usage_date) filter (where c.fetched_at is null or c.status = 'missing') - 1, d.due_until),
      d.due_from - 1) as fresh
    from usage_export.due_series d
    left join bi.coverage c on c.project_id = d.project_id and c."grouping" = d."grouping" and c.filter = d.filter
      and c.usage_date between d.due_from and d.due_until
    where d.project = ${project} and d."grouping" = ${grouping} and d.filter = ${filter}
    group by d.due_from, d.due_until
  `.execute(db);
  return rows[0]?.fresh ?? null;
}
