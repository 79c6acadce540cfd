// Compares the database with a short model in plain code, after random sequences of answers, late answers, empty answers and failures.

import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { addDays, daysOf } from "../../../src/usage/days.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import {
  failOn,
  makeDoubtsAnHourOlder,
  newSeries,
  nextFetchNo,
  requestsByDay,
  rowOf,
  shown,
  sliceOn,
  store,
  type ViewRow,
  view,
} from "../stored-usage.ts";

const { db, read } = await testDatabase();

const DAYS = ["2026-03-15", "2026-03-16", "2026-03-17"];
/** "null" is the group without a value. */
const GROUPS = ["agent", "listen", "null"];

type Rows = Readonly<Record<string, string>>;
/** Why a day is suspect: an answer that would have removed most of its usage, and which run got it first. */
type Doubt = { readonly kind: string; readonly run: string; readonly hour: number; readonly fetchNo: number };
/** The model's state of a day. */
type DayState = { fetchNo: number; rows: Rows; status: string; doubt: Doubt | undefined };

const aRows = fc.dictionary(fc.constantFrom(...GROUPS), fc.constantFrom("1", "2", "800"), {
  maxKeys: 3,
  noNullPrototype: true,
});
const aStep = fc.record({
  kind: fc.constantFrom("answer", "answer", "answer", "failure", "an hour passes"),
  days: fc.dictionary(fc.constantFrom(...DAYS), aRows, { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
  /** The step uses the fetch number that is this many before the newest. */
  late: fc.constantFrom(0, 0, 0, 1, 2),
  run: fc.constantFrom("run 1", "run 2", "run 3"),
});
type Step = { readonly kind: string; readonly run: string };

const sum = (rows: Rows) => Object.values(rows).reduce((total, requests) => total + Number(requests), 0);

function doubtOf(before: Rows, after: Rows): string | undefined {
  if (Object.keys(before).length === 0) return undefined;
  if (Object.keys(after).length === 0) return "empty";
  return sum(before) >= 100 && sum(after) * 10 < sum(before) ? "fall" : undefined;
}

/** The model's rule: the state of a day after a step. A failure counts only if it is newer than what is known, an answer also if it is as new. */
function stateAfter(known: DayState | undefined, step: Step, rows: Rows, fetchNo: number, hour: number): DayState {
  const before = known ?? { fetchNo: 0, rows: {}, status: "failed", doubt: undefined };
  const newest = Math.max(before.fetchNo, before.doubt?.fetchNo ?? 0);
  if (step.kind === "failure") return newest < fetchNo ? { ...before, status: "failed" } : before;
  if (newest > fetchNo) return before;
  const kind = doubtOf(before.rows, rows);
  const first = before.doubt?.kind === kind ? before.doubt : undefined;
  const confirmed = first !== undefined && first.run !== step.run && first.hour < hour;
  if (kind === undefined || confirmed) return { fetchNo, rows, status: "complete", doubt: undefined };
  return { ...before, status: "suspect", doubt: { run: step.run, hour, ...first, kind, fetchNo } };
}

const visible = (model: ReadonlyMap<string, DayState>) =>
  Object.fromEntries([...model].flatMap(([day, { rows }]) => (Object.keys(rows).length > 0 ? [[day, rows]] : [])));

async function shownAt(moment: string, { id }: Project) {
  const rows = await read(sql<ViewRow>`
    select usage_date, group_value, requests from bi.usage_as_of(${moment}::timestamptz) where project_id = ${id}
  `);
  return requestsByDay(rows, "group_value");
}

async function now(): Promise<string> {
  const [row] = await read(sql<{ now: string }>`select clock_timestamp()::text as now`);
  return row?.now ?? "";
}

test("after any sequence of readings the views show what the model says, now and as of each moment", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { minLength: 1, maxLength: 10 }), async (steps) => {
      const { project, seriesId } = await newSeries(db);
      const runs = new Map(["run 1", "run 2", "run 3"].map((run) => [run, randomUUID()]));
      const model = new Map<string, DayState>();
      const fetches = [await nextFetchNo(db), await nextFetchNo(db)];
      const past: { readonly moment: string; readonly shows: unknown }[] = [];
      let hour = 0;

      for (const step of steps) {
        fetches.push(await nextFetchNo(db));
        const fetchNo = fetches.at(-1 - step.late) ?? 0;
        const days = Object.entries(step.days);
        if (step.kind === "an hour passes") {
          await makeDoubtsAnHourOlder(db);
          hour++;
          continue;
        }
        if (step.kind === "failure") {
          await failOn(db, seriesId, Object.keys(step.days), { fetchNo });
        } else {
          await store(db, seriesId, step.days, { fetchNo, runId: runs.get(step.run) ?? "" });
        }
        for (const [day, rows] of days) model.set(day, stateAfter(model.get(day), step, rows, fetchNo, hour));

        expect(await shown(db, project)).toEqual(visible(model));
        const coverage = await view(db, "coverage", project);
        expect(Object.fromEntries(coverage.map((row) => [row.usage_date, row.status]))).toEqual(
          Object.fromEntries([...model].map(([day, { status }]) => [day, status])),
        );
        past.push({ moment: await now(), shows: visible(model) });
      }
      for (const { moment, shows } of past) expect(await shownAt(moment, project)).toEqual(shows);
    }),
    { numRuns: 30 },
  );
});

const MONTH = daysOf({ start: "2026-01-31", end: addDays("2026-01-31", 30) });
const GROUPS_A_DAY = 452;

/** A month of 14,012 rows (31 × 452) with every metric. */
function month(requests: (day: number, group: number) => number = () => 1) {
  return MONTH.map((day, d) =>
    sliceOn(
      day,
      Array.from({ length: GROUPS_A_DAY }, (_, g) =>
        rowOf([`tag ${g}`, `another tag ${g}`], {
          hours: `${g}.724206944444${d}`,
          total_hours: `${g}.739579166666${d}`,
          agent_hours: "0",
          tokens_in: "0",
          tokens_out: "0",
          tts_characters: String(9_158_866 + g),
          requests: String(requests(d, g)),
        }),
      ),
    ),
  );
}

const counts = (seriesId: number) =>
  read(sql`
    select (select count(*)::integer from usage_export.slice_row where series_id = ${seriesId}) as rows,
      (select count(*)::integer from usage_export.row_revision where series_id = ${seriesId}) as changes,
      (select sum(requests)::integer from usage_export.slice_row where series_id = ${seriesId}) as requests
  `);

test("an answer of 31 days and 14,012 rows is stored only where it differs from what is stored", async () => {
  const { seriesId } = await newSeries(db);
  expect((await store(db, seriesId, month())).rowsChanged).toBe(14_012);
  expect(await counts(seriesId)).toEqual([{ rows: 14_012, changes: 14_012, requests: 14_012 }]);

  const again = await store(db, seriesId, month());
  expect(new Set(again.slices.map(({ decision }) => decision))).toEqual(new Set(["unchanged"]));

  const changed = await store(
    db,
    seriesId,
    month((day, group) => (day >= 24 && group % 10 === 0 ? 2 : 1)),
  );
  const changes = 7 * 46; // on 7 days every tenth of 452 groups
  expect(changed.rowsChanged).toBe(changes);
  expect(await counts(seriesId)).toEqual([{ rows: 14_012, changes: 14_012 + changes, requests: 14_012 + changes }]);
});

test("a day may have 14,000 different groups", async () => {
  const { seriesId } = await newSeries(db);
  const groups = Array.from({ length: 14_000 }, (_, i) => [`accessor-${i}`, String(i)] as const);
  expect((await store(db, seriesId, { "2026-03-17": groups })).rowsChanged).toBe(14_000);
});

test("storing a month does not scan the slices of all years", async () => {
  const { seriesId } = await newSeries(db);
  await sql`
    insert into usage_export.slice (series_id, usage_date, status)
    select ${seriesId}, '2025-12-31'::date - day, 'complete' from generate_series(1, 20000) as day
  `.execute(db);
  await sql`analyze usage_export.slice`.execute(db);
  const before = await slicesReadWhole();
  await store(db, seriesId, month());
  expect((await slicesReadWhole()) - before).toBe(0);
});

/** How many slices were read by scans of the whole table. */
async function slicesReadWhole(): Promise<number> {
  // A connection reports its statistics up to a second late unless told to. There are more calls than connections in the pool, so each is told.
  await Promise.all(
    Array.from({ length: 8 }, () => sql`select pg_stat_force_next_flush(), pg_sleep(0.05)`.execute(db)),
  );
  const [row] = await read(sql<{ read: number }>`
    select seq_tup_read::integer as read from pg_stat_user_tables where relid = 'usage_export.slice'::regclass
  `);
  return row?.read ?? Number.NaN;
}
