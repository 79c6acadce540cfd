// Compares the database with a model in a few lines of plain code, after random sequences of answers, late answers, empty answers and
// failures.

import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { makeDoubtsAnHourOlder, newSeries, shown, slice, store, type ViewRow, view } from "../stored-usage.ts";

const { db } = await testDatabase();

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
  /** How many fetch numbers before the newest one this step uses. */
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

/** The model: the state of a day after a step. */
function stateAfter(kept: DayState | undefined, step: Step, rows: Rows, fetchNo: number, hour: number): DayState {
  const before = kept ?? { fetchNo: 0, rows: {}, status: "failed", doubt: undefined };
  const newest = Math.max(before.fetchNo, before.doubt?.fetchNo ?? 0);
  if (step.kind === "failure") return newest < fetchNo ? { ...before, status: "failed" } : before;
  if (newest > fetchNo) return before;
  const kind = doubtOf(before.rows, rows);
  const first = before.doubt?.kind === kind ? before.doubt : undefined;
  const confirmed = first !== undefined && first.run !== step.run && first.hour < hour;
  if (kind === undefined || confirmed) return { fetchNo, rows, status: "complete", doubt: undefined };
  return { ...before, status: "suspect", doubt: { run: step.run, hour, ...first, kind, fetchNo } };
}

const visible = (kept: ReadonlyMap<string, DayState>) =>
  Object.fromEntries([...kept].flatMap(([day, { rows }]) => (Object.keys(rows).length > 0 ? [[day, rows]] : [])));

async function shownAt(moment: string, { id }: Project): Promise<Record<string, Record<string, unknown>>> {
  const { rows } = await sql<ViewRow>`
    select usage_date, group_value, requests from bi.usage_as_of(${moment}::timestamptz) where project_id = ${id}
  `.execute(db);
  const days = Map.groupBy(rows, (row) => String(row.usage_date));
  return Object.fromEntries(
    [...days].map(([day, ofDay]) => [
      day,
      Object.fromEntries(ofDay.map((row) => [String(row.group_value), row.requests])),
    ]),
  );
}

async function now(): Promise<string> {
  const { rows } = await sql<{ now: string }>`select clock_timestamp()::text as now`.execute(db);
  return rows[0]?.now ?? "";
}

test("after any sequence of readings the views show what the model says, now and as of each moment", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { minLength: 1, maxLength: 10 }), async (steps) => {
      const { project, seriesId } = await newSeries(db);
      const runs = new Map(["run 1", "run 2", "run 3"].map((run) => [run, randomUUID()]));
      const kept = new Map<string, DayState>();
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
          await recordFailure(db, { seriesId, days: days.map(([day]) => day), fetchNo, reason: "down" });
        } else {
          await store(
            db,
            seriesId,
            days.map(([day, rows]) => slice(day, rows)),
            { fetchNo, runId: runs.get(step.run) ?? "" },
          );
        }
        for (const [day, rows] of days) kept.set(day, stateAfter(kept.get(day), step, rows, fetchNo, hour));

        expect(await shown(db, project)).toEqual(visible(kept));
        const coverage = await view(db, "coverage", project);
        expect(Object.fromEntries(coverage.map((row) => [row.usage_date, row.status]))).toEqual(
          Object.fromEntries([...kept].map(([day, { status }]) => [day, status])),
        );
        past.push({ moment: await now(), shows: visible(kept) });
      }
      for (const { moment, shows } of past) expect(await shownAt(moment, project)).toEqual(shows);
    }),
    { numRuns: 30 },
  );
});
