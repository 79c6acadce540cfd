// Random slices of random series: bi.coverage, bi.coverage_gaps and bi.freshness show what a calculation day by day says.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { Day } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { configured, daysBack, newProject, type ViewRow, view } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

/** The slices of a day, by what the views say of it while the day is due. */
const SLICES = {
  complete: { status: "complete", fetched: true, closed: true },
  // Read only before it was over.
  early: { status: "complete", fetched: true, closed: false },
  suspect: { status: "suspect", fetched: true, closed: true },
  failed: { status: "failed", fetched: false, closed: false },
  "failed, with rows": { status: "failed", fetched: true, closed: true },
} as const;
const KINDS = [undefined, undefined, "complete", "complete", "complete", ...Object.keys(SLICES)] as (
  | keyof typeof SLICES
  | undefined
)[];

const DAYS = 14;

const random = (below: number) => Math.floor(Math.random() * below);

type RandomSeries = {
  readonly seriesId: number;
  /** By days back. */
  readonly slices: ReadonlyMap<number, keyof typeof SLICES>;
  /** In days back; `dueThrough` may lie before `dueFrom`, as after a clock was set back. */
  readonly dueFrom: number;
  readonly dueThrough: number;
};

/** Of a series with a window, whose next scheduled time is to come: it is due through `dueThrough`, and to be closed through yesterday. */
async function storeRandom(count: number): Promise<{ project: ReturnType<typeof newProject>; series: RandomSeries[] }> {
  const project = newProject();
  const all = Array.from({ length: count }, (_, i) =>
    configured(project, "endpoint", {
      windowDays: 7,
      filter: { name: `filter ${i}`, features: {}, dimensions: { tags: String(i) } },
    }),
  );
  const ids = await registerSeries(db, all);
  const series = all.map((one) => ({
    seriesId: seriesIdOf(ids, one.series),
    dueFrom: random(DAYS + 2),
    dueThrough: 1 + random(4),
    // Some series are read on all days, and most miss some.
    slices: new Map(
      Array.from(
        { length: DAYS },
        (_, i) => [i, random(4) === 0 ? "complete" : KINDS[random(KINDS.length)]] as const,
      ).filter((entry): entry is [number, keyof typeof SLICES] => entry[1] !== undefined),
    ),
  }));
  for (const { seriesId, slices, dueFrom, dueThrough } of series) {
    await sql`
      update usage_export.series
      set due_from = ${back(dueFrom)}::date, due_through = ${back(dueThrough)}::date, next_due_at = now() + interval '1 hour'
      where series_id = ${seriesId}
    `.execute(db);
    for (const [day, kind] of slices) {
      const { status, fetched, closed } = SLICES[kind];
      await sql`
        insert into usage_export.slice (series_id, usage_date, status, fetched_at, closed_at, error)
        values (${seriesId}, ${back(day)}::date, ${status}, case when ${fetched} then now() end, case when ${closed} then now() end,
          case when ${status}::text = 'failed' then 'down' end)
      `.execute(db);
    }
  }
  return { project, series };
}

type Shown = readonly [status: string, why: "early" | "down" | null];

/** What the views say of a day; undefined if it is in none. */
function shownOn({ slices, dueFrom, dueThrough }: RandomSeries, day: number): Shown | undefined {
  const kind = slices.get(day);
  const isDue = day <= dueFrom && day >= dueThrough;
  if (kind === undefined) return isDue ? ["missing", null] : undefined;
  if (kind === "early") return isDue ? ["missing", "early"] : ["complete", null];
  const { status } = SLICES[kind];
  return [status, status === "failed" ? "down" : null];
}

function isRead(series: RandomSeries, day: number): boolean {
  const kind = series.slices.get(day);
  return kind !== undefined && SLICES[kind].fetched && shownOn(series, day)?.[0] !== "missing";
}

function whyOf(error: unknown): Shown[1] {
  if (error === null || error === "down") return error;
  return "early";
}

function gapsOf(series: RandomSeries): readonly string[] {
  const gaps: { key: string; from: Day; to: Day; days: number }[] = [];
  for (let day = DAYS + 2; day >= 0; day--) {
    const [status, why] = shownOn(series, day) ?? [];
    if (status !== "missing" && status !== "failed") continue;
    const key = `${status} ${why}`;
    const open = gaps.findLast((gap) => gap.key === key && gap.to === back(day + 1));
    if (open) Object.assign(open, { to: back(day), days: open.days + 1 });
    else gaps.push({ key, from: back(day), to: back(day), days: 1 });
  }
  return gaps.map(({ key, from, to, days }) => `${key} ${from} ${to} ${days}`).sort();
}

/** The day before `dueFrom` if that day is not read, and never after `dueThrough`. */
function freshThrough(series: RandomSeries): Day {
  let day = series.dueFrom;
  while (day >= series.dueThrough && isRead(series, day)) day--;
  return [back(day + 1), back(series.dueThrough)].sort()[0] ?? "";
}

test("coverage, gaps and freshness of 150 random series are those of a calculation day by day", async () => {
  const { project, series } = await storeRandom(150);
  const byFilter = async (name: string) =>
    Map.groupBy(await view(db, name, project), (row) => Number(String(row.filter).split(" ")[1]));
  const [coverage, gaps, freshness] = await Promise.all(["coverage", "coverage_gaps", "freshness"].map(byFilter));
  for (const [i, one] of series.entries()) {
    const shown = (coverage?.get(i) ?? []).map((row): [unknown, Shown] => [
      row.usage_date,
      [String(row.status), whyOf(row.error)],
    ]);
    const expected = Array.from({ length: DAYS + 3 }, (_, day) => [back(day), shownOn(one, day)] as const);
    expect(new Map(shown as [Day, Shown][])).toEqual(new Map(expected.filter(([, status]) => status)));
    const text = (row: ViewRow) => `${row.status} ${whyOf(row.error)} ${row.from_date} ${row.to_date} ${row.days}`;
    expect((gaps?.get(i) ?? []).map(text).sort()).toEqual(gapsOf(one));
    expect(freshness?.get(i)?.map((row) => row.fresh_through)).toEqual([freshThrough(one)]);
  }
});
