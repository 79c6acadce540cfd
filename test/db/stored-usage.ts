// Registers series, stores answers and reads views, with defaults for everything that a test does not specify.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { type Database, databaseNow } from "../../src/db/connection/database.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { registerSeries, seriesIdOf } from "../../src/db/usage/stored-series.ts";
import { type AnswerToStore, mergeAnswers, type StoredAnswer } from "../../src/db/usage/writer.ts";
import {
  columnsOf,
  groupOf,
  type NormalisedSlice,
  type SnapshotRow,
  sliceOf,
  UNGROUPED,
} from "../../src/usage/answer-rows.ts";
import { addDays, type Day, dayOf } from "../../src/usage/days.ts";
import type { Source } from "../../src/usage/dimensions.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import type { ConfiguredSeries } from "../../src/usage/plan.ts";
import { dimensionsOf, type Filter, type Grouping, type Project, type Series } from "../../src/usage/series.ts";
import { ALL_USAGE } from "../usage/sample-request.ts";

type Metric = (typeof METRICS)[number];
export type Numbers = Readonly<Partial<Record<Metric, string>>>;

/** A project of its own for each test, so that tests of one file do not see each other's numbers. */
export function newProject(): Project {
  const id = randomUUID();
  return { id, name: `project ${id.slice(0, 8)}` };
}

export function configured(
  project: Project,
  grouping: Grouping = "endpoint",
  part: { readonly source?: Source; readonly filter?: Filter; readonly windowDays?: number } = {},
): ConfiguredSeries {
  const { source = "usage", filter = ALL_USAGE, windowDays } = part;
  return { series: { project, source, grouping, filter }, windowDays };
}

/** Registers one series, of a new project unless one is given. All other series are then no longer configured. */
export async function newSeries(
  db: Database,
  grouping: Grouping = "endpoint",
  part: { readonly project?: Project; readonly windowDays?: number; readonly filter?: Filter } = {},
): Promise<{ readonly project: Project; readonly series: Series; readonly seriesId: number }> {
  const project = part.project ?? newProject();
  const one = configured(project, grouping, part);
  const ids = await registerSeries(db, [one]);
  return { project, series: one.series, seriesId: seriesIdOf(ids, one.series) };
}

function metricsOf(numbers: Numbers, extra: string | null = null): SnapshotRow["metrics"] {
  return { values: METRICS.map((metric) => numbers[metric] ?? null), extra };
}

/** A row for one value of the first dimension of the grouping. */
export function rowOf(
  value: unknown,
  numbers: Numbers | string,
  extra: string | null = null,
  grouping: Grouping = "endpoint",
): SnapshotRow {
  const [dimension = "endpoint"] = dimensionsOf(grouping);
  const group = groupOf(dimension, value, 0);
  return { group, metrics: metricsOf(typeof numbers === "string" ? { requests: numbers } : numbers, extra) };
}

/** A slice by endpoint: the requests of each value. "null" is the group without a value, as `shown` names it. */
export function slice(day: Day, requests: Readonly<Record<string, string>>): NormalisedSlice {
  return rowsOn(
    day,
    Object.entries(requests).map(([value, count]) => rowOf(value === "null" ? null : value, count)),
  );
}

export function rowsOn(day: Day, rows: readonly SnapshotRow[]): NormalisedSlice {
  return sliceOf(day, false, columnsOf(rows));
}

/** The row of the ungrouped total. */
export function totalRow(numbers: Numbers, extra: string | null = null): SnapshotRow {
  return { group: UNGROUPED, metrics: metricsOf(numbers, extra) };
}

/** A slice of the ungrouped total. */
export function total(day: Day, numbers: Numbers): NormalisedSlice {
  return rowsOn(day, [totalRow(numbers)]);
}

/** Stores an answer with a new fetch number and a new run id. The members of `part` replace the defaults. */
export async function store(
  db: Database,
  seriesId: number,
  slices: readonly NormalisedSlice[],
  part: Partial<AnswerToStore> = {},
): Promise<StoredAnswer> {
  const answer = {
    seriesId,
    grouping: "endpoint",
    fetchNo: part.fetchNo ?? (await nextFetchNo(db)),
    askedMs: performance.now(),
    runId: randomUUID(),
    slices,
    emptyGuard: "confirm",
    undated: "snapshot",
    cliffGuard: "confirm",
    serviceChoosesDays: false,
    ...part,
  } as const;
  const [result] = await mergeAnswers(db, [answer]);
  if (!result) throw new Error("the answer has no result");
  return result;
}

/** Makes every slice suspect since an hour earlier, so that a run may confirm it now. */
export async function makeDoubtsAnHourOlder(db: Database): Promise<void> {
  await sql`update usage_export.slice set suspect_since = suspect_since - interval '1 hour'`.execute(db);
}

export type ViewRow = Readonly<Record<string, unknown>>;

/** A view's rows of the project, by day. */
export async function view(db: Database, name: string, { id }: Project): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select * from ${sql.id("bi", name)} v where project_id = ${id} order by v::text
  `.execute(db);
  return rows;
}

/** What bi.usage_by_endpoint shows: day to value to requests. */
export async function shown(db: Database, project: Project): Promise<Readonly<Record<Day, ViewRow>>> {
  const rows = await view(db, "usage_by_endpoint", project);
  const days = Map.groupBy(rows, (row) => String(row.usage_date));
  return Object.fromEntries(
    [...days].map(([day, ofDay]) => [
      day,
      Object.fromEntries(ofDay.map((row) => [String(row.endpoint), row.requests])),
    ]),
  );
}

export async function coverageOf(db: Database, project: Project): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select usage_date, status, rows, error from bi.coverage where project_id = ${project.id} order by usage_date
  `.execute(db);
  return rows;
}

/** Returns a function for the day so many days before today by the database's clock, which decides what is open, due and final. */
export async function daysBack(db: Database): Promise<(days: number) => Day> {
  const today = dayOf(await databaseNow(db));
  return (days) => addDays(today, -days);
}

/** The version of every stored row. It changes whenever the row is written. */
export async function rowVersions(db: Database, seriesId: number): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select usage_date, group_id, xmin::text, ctid::text, revision, last_changed_at
    from usage_export.snapshot_row where series_id = ${seriesId} order by usage_date, group_id
  `.execute(db);
  return rows;
}
