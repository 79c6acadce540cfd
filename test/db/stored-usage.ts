// Registers series, stores answers and reads views, with defaults for everything that a test does not specify.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { type Database, databaseNow } from "../../src/db/connection/database.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { openFetchNumbers } from "../../src/db/usage/fetch-numbers.ts";
import { extendDue, registerSeries, seriesIdOf } from "../../src/db/usage/stored-series.ts";
import { type AnswerToStore, mergeAnswers, type StoredAnswer } from "../../src/db/usage/writer.ts";
import { addDays, type Day, dayOf } from "../../src/usage/days.ts";
import type { Source } from "../../src/usage/dimensions.ts";
import type { ConfiguredSeries } from "../../src/usage/export-plan.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { type AnswerRow, groupOf, type NormalisedSlice, sliceOf, UNGROUPED } from "../../src/usage/normalise.ts";
import { dimensionsOf, type Filter, type Grouping, type Project, type Series } from "../../src/usage/series.ts";
import type { AnswerRules } from "../../src/usage/slice-decision.ts";
import { ALL_USAGE } from "../usage/sample-request.ts";

export type Numbers = Readonly<Partial<Record<(typeof METRICS)[number], string>>>;

/** The number of a fetch that begins now. */
export const nextFetchNo = (db: Database) => openFetchNumbers(db)();

/** A project of its own for each test, so that tests of one file do not see each other's numbers. */
export function newProject(): Project {
  const id = randomUUID();
  return { id, name: `project ${id.slice(0, 8)}` };
}

type SeriesOptions = { readonly source?: Source; readonly filter?: Filter; readonly windowDays?: number };

export function configured(
  project: Project,
  grouping: Grouping = "endpoint",
  options: SeriesOptions = {},
): ConfiguredSeries {
  const { source = "usage", filter = ALL_USAGE, windowDays } = options;
  return { series: { project, source, grouping, filter }, windowDays };
}

/** Makes these the only configured series, and returns their ids in this order. */
export async function register<const T extends readonly ConfiguredSeries[]>(db: Database, ...all: T) {
  const ids = await registerSeries(db, all);
  return all.map(({ series }) => seriesIdOf(ids, series)) as unknown as { readonly [K in keyof T]: number };
}

type NewSeriesOptions = SeriesOptions & { readonly project?: Project; readonly usage?: Usage };

/** Registers one series, of a new project unless one is given, and stores its usage. All other series are then no longer configured. */
export async function newSeries(
  db: Database,
  grouping: Grouping = "endpoint",
  { project = newProject(), usage, ...options }: NewSeriesOptions = {},
): Promise<{ readonly project: Project; readonly series: Series; readonly seriesId: number }> {
  const one = configured(project, grouping, options);
  const [seriesId] = await register(db, one);
  if (usage) await store(db, seriesId, usage);
  return { project, series: one.series, seriesId };
}

/** Makes these days due, as a run with this window does. */
export async function setDue(db: Database, seriesIds: readonly number[], start: Day, end: Day): Promise<void> {
  const due = { first: start, oldestWindow: { start, end }, through: end };
  await inTransaction(db, (tx) => extendDue(tx, seriesIds, due));
}

function metricsOf(numbers: Numbers, extra: string | null = null): AnswerRow["metrics"] {
  return { values: METRICS.map((metric) => numbers[metric] ?? null), extra };
}

/** A row for one value of the grouping's first dimension. A text in place of numbers is a number of requests. */
export function rowOf(
  value: unknown,
  numbers: Numbers | string,
  extra: string | null = null,
  grouping: Grouping = "endpoint",
): AnswerRow {
  const [dimension = "endpoint"] = dimensionsOf(grouping);
  const group = groupOf(dimension, value, 0);
  return { group, metrics: metricsOf(typeof numbers === "string" ? { requests: numbers } : numbers, extra) };
}

export function sliceOn(day: Day, rows: readonly AnswerRow[]): NormalisedSlice {
  return sliceOf(day, rows);
}

/** A slice of the ungrouped total. */
export function total(day: Day, numbers: Numbers): NormalisedSlice {
  return sliceOn(day, [{ group: UNGROUPED, metrics: metricsOf(numbers) }]);
}

/** By day, the numbers of the total, or of each value of the dimension ("null": no value). A text is a number of requests. */
export type Usage = Readonly<Record<Day, Rows>>;
type Rows = Readonly<Record<string, Numbers | string>> | readonly (readonly [value: unknown, Numbers | string])[];

function slicesOf(grouping: Grouping, usage: Usage): readonly NormalisedSlice[] {
  return Object.entries(usage).map(([day, rows]) => {
    const pairs: readonly (readonly [value: unknown, Numbers | string])[] = Array.isArray(rows)
      ? rows
      : Object.entries(rows).map(([value, numbers]) => [value === "null" ? null : value, numbers]);
    if (pairs.length === 0) return sliceOn(day, []);
    // A total is given as its numbers, or as a list of one pair whose value is ignored.
    if (grouping === "none") return total(day, (Array.isArray(rows) ? pairs[0]?.[1] : rows) as Numbers);
    const answered = pairs.map(([value, numbers]) => rowOf(value, numbers, null, grouping));
    return sliceOn(day, answered);
  });
}

type Answered = [seriesId: number, answered: readonly NormalisedSlice[] | Usage, part?: AnswerPart];

export type AnswerPart = Partial<AnswerToStore & AnswerRules>;

/** An answer with a new fetch number and a new run id. The members of `part` replace the defaults. */
export async function answerOf(db: Database, ...[seriesId, answered, part = {}]: Answered): Promise<AnswerToStore> {
  const { rows } = await sql<{ grouping: Grouping }>`
    select "grouping" from usage_export.series where series_id = ${seriesId}
  `.execute(db);
  const grouping = rows[0]?.grouping ?? "endpoint";
  const { emptyGuard = "confirm", cliffGuard = "confirm", undated = "snapshot", ...rest } = part;
  return {
    ...{ seriesId, grouping, runId: randomUUID(), fetchNo: rest.fetchNo ?? (await nextFetchNo(db)) },
    slices: Array.isArray(answered) ? answered : slicesOf(grouping, answered as Usage),
    askedMs: performance.now(),
    rules: { emptyGuard, cliffGuard, undated },
    serviceChoosesDays: false,
    ...rest,
  };
}

export async function store(db: Database, ...answer: Answered): Promise<StoredAnswer> {
  const [result] = await mergeAnswers(db, [await answerOf(db, ...answer)]);
  if (!result) throw new Error("the answer has no result");
  return result;
}

/** Makes an answer replace what is stored, even if it is empty or has far less. */
export const UNGUARDED = { emptyGuard: "off", cliffGuard: "off" } as const;

/** Records that the newest fetch of these days failed. */
export async function failOn(
  db: Database,
  seriesId: number,
  days: readonly Day[],
  part: Partial<Parameters<typeof recordFailure>[1]> = {},
): Promise<void> {
  const fetchNo = part.fetchNo ?? (await nextFetchNo(db));
  await recordFailure(db, { seriesId, days, reason: "down", ...part, fetchNo });
}

/** Makes each doubt about a slice an hour older, so that a run may confirm the slice's newest answer now. */
export async function makeDoubtsAnHourOlder(db: Database): Promise<void> {
  await sql`update usage_export.slice set suspect_since = suspect_since - interval '1 hour'`.execute(db);
}

export type ViewRow = Readonly<Record<string, unknown>>;

/** Each row as one text: the values of these columns, with spaces between them. */
export function textsOf(rows: readonly ViewRow[], columns: string): readonly string[] {
  const names = columns.split(" ");
  return rows.map((row) => names.map((name) => String(row[name])).join(" "));
}

/** The project's rows in a view of bi, ordered by their text. */
export async function view(db: Database, name: string, { id }: Project): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select * from ${sql.id("bi", name)} v where project_id = ${id} order by v::text
  `.execute(db);
  return rows;
}

/** The requests that bi.usage_by_endpoint shows, by day and endpoint. */
export async function shown(db: Database, project: Project): Promise<Readonly<Record<Day, ViewRow>>> {
  return requestsByDay(await view(db, "usage_by_endpoint", project), "endpoint");
}

export function requestsByDay(rows: readonly ViewRow[], group: string): Readonly<Record<Day, ViewRow>> {
  const days = Map.groupBy(rows, (row) => String(row.usage_date));
  const requestsOf = (ofDay: readonly ViewRow[]) => ofDay.map((row) => [String(row[group]), row.requests]);
  return Object.fromEntries([...days].map(([day, ofDay]) => [day, Object.fromEntries(requestsOf(ofDay))]));
}

export async function coverageOf(db: Database, { id }: Project): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select usage_date, status, rows, error from bi.coverage where project_id = ${id} order by usage_date
  `.execute(db);
  return rows;
}

/** Returns a function that counts days back from today by the database's clock, which decides what is open, due and final. */
export async function daysBack(db: Database): Promise<(days: number) => Day> {
  const today = dayOf(await databaseNow(db));
  return (days) => addDays(today, -days);
}

/** The version of every stored row. It changes whenever the row is written. */
export async function rowVersions(db: Database, seriesId: number): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select usage_date, group_id, xmin::text, ctid::text, revision, last_changed_at
    from usage_export.slice_row where series_id = ${seriesId} order by usage_date, group_id
  `.execute(db);
  return rows;
}
