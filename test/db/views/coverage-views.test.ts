// bi.coverage, bi.coverage_gaps and bi.freshness: which days of a series are complete, missing or failed, and when a day becomes due again.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { randomFrom } from "../../../src/emulator/usage.ts";
import type { Day } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import {
  configured,
  daysBack,
  failOn,
  newProject,
  newSeries,
  register,
  setDue,
  store,
  textsOf,
  type ViewRow,
  view,
} from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

const HOUR_MS = 60 * 60 * 1_000;
const PAST = new Date(Date.now() - HOUR_MS);
const FUTURE = new Date(Date.now() + HOUR_MS);

async function setNextDue(seriesId: number, at: Date): Promise<void> {
  await sql`update usage_export.series set next_due_at = ${at} where series_id = ${seriesId}`.execute(db);
}

/** A series whose due days are those from `from` to `through` days back. */
async function dueSeries(from: number, through: number, nextDueAt: Date, windowDays = 7) {
  const one = await newSeries(db, "endpoint", { windowDays });
  await setDue(db, [one.seriesId], back(from), back(through));
  await setNextDue(one.seriesId, nextDueAt);
  return one;
}

async function statuses(project: Parameters<typeof view>[2]): Promise<Record<Day, unknown>> {
  const rows = await view(db, "coverage", project);
  return Object.fromEntries(rows.map((row) => [String(row.usage_date), row.status]));
}

test("bi.coverage shows the status of a slice, when it was read and how many rows it has", async () => {
  const usage = { [back(1)]: { listen: "1", speak: "2" } };
  const { project } = await newSeries(db, "endpoint", { windowDays: 7, usage });
  const series = { project: project.name, source: "usage", grouping: "endpoint", filter: "all", active: true };
  const slice = { status: "complete", finality: "settling", fetched_at: expect.any(Date), rows: 2, error: null };
  expect(await view(db, "coverage", project)).toMatchObject([{ ...series, ...slice, usage_date: back(1) }]);
});

test("yesterday counts as missing once the next scheduled time has come", async () => {
  const { project, seriesId } = await dueSeries(2, 2, FUTURE);
  await store(db, seriesId, { [back(2)]: {} });
  expect(await statuses(project)).toEqual({ [back(2)]: "complete" });
  await setNextDue(seriesId, PAST);
  expect(await statuses(project)).toEqual({ [back(2)]: "complete", [back(1)]: "missing" });
});

test("a series that no run has planned yet has no missing days", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await setNextDue(seriesId, PAST);
  expect(await view(db, "coverage", project)).toEqual([]);
  expect(await view(db, "freshness", project)).toEqual([]);
});

test("a missing or failed day is settling while it is in the window", async () => {
  const { project, seriesId } = await dueSeries(4, 1, FUTURE, 2);
  await failOn(db, seriesId, [back(3), back(1)]);
  const rows = await view(db, "coverage", project);
  expect(textsOf(rows, "usage_date status finality").toSorted()).toEqual([
    `${back(4)} missing final`,
    `${back(3)} failed final`,
    `${back(2)} missing settling`,
    `${back(1)} failed settling`,
  ]);
});

test("a day that was read before it ended is open, even if later readings fail", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint", {
    windowDays: 7,
    usage: { [back(0)]: { listen: "1" } },
  });
  await failOn(db, seriesId, [back(0)]);
  expect(await view(db, "coverage", project)).toMatchObject([{ status: "failed", finality: "open", rows: 1 }]);
});

const DAY_MS = 24 * HOUR_MS;
/** The options of an answer that was requested a day ago and is stored now. */
const askedYesterday = () => ({ askedMs: performance.now() - DAY_MS });

test("a day whose reading began before it ended is due again, however late the answer came", async () => {
  const { project, seriesId } = await dueSeries(3, 1, FUTURE);
  await store(db, seriesId, { [back(2)]: {}, [back(1)]: { listen: "1" } }, askedYesterday());
  expect(await view(db, "coverage", project)).toMatchObject([
    { usage_date: back(3), status: "missing", error: null },
    { usage_date: back(2), status: "complete" },
    { usage_date: back(1), status: "missing", finality: "open", rows: 1, error: expect.stringMatching(/^read before/) },
  ]);
  expect(await view(db, "coverage_gaps", project)).toMatchObject([
    { from_date: back(3), to_date: back(3), error: null },
    { from_date: back(1), to_date: back(1), error: expect.stringMatching(/^read before/) },
  ]);
  await store(db, seriesId, { [back(3)]: {} });
  expect(await view(db, "freshness", project)).toMatchObject([{ fresh_through: back(2) }]);

  await store(db, seriesId, { [back(1)]: { listen: "1" } });
  expect(await statuses(project)).toEqual({ [back(3)]: "complete", [back(2)]: "complete", [back(1)]: "complete" });
});

test("without a window, a day that was read before it ended is due again", async () => {
  const { project, seriesId } = await newSeries(db, "endpoint");
  const askedMs = performance.now() - 2 * DAY_MS;
  // Without a window the service chooses the days.
  const early = { serviceChoosesDays: true, askedMs };
  await store(db, seriesId, { [back(2)]: { listen: "1" }, [back(1)]: { listen: "1" } }, early);
  await setNextDue(seriesId, FUTURE);
  expect(await statuses(project)).toEqual({ [back(2)]: "missing", [back(1)]: "complete" });
  await setNextDue(seriesId, PAST);
  expect(await statuses(project)).toEqual({ [back(2)]: "missing", [back(1)]: "missing" });
});

test("a series that is no longer configured shows only the days that were read", async () => {
  const { project, seriesId } = await dueSeries(4, 1, PAST);
  await store(db, seriesId, { [back(4)]: { listen: "1" } });
  await store(db, seriesId, { [back(1)]: { listen: "1" } }, askedYesterday());
  await failOn(db, seriesId, [back(2)]);
  expect(Object.values(await statuses(project)).sort()).toEqual(["complete", "failed", "missing", "missing"]);

  await register(db);
  expect(await statuses(project)).toEqual({ [back(4)]: "complete", [back(1)]: "complete" });
});

test("a gap of billing does not split a gap of usage that has the same grouping", async () => {
  const project = newProject();
  const series = (["usage", "billing"] as const).map((source) => configured(project, "none", { source }));
  const [usage = 0, billing = 0] = await register(db, ...series);
  await failOn(db, usage, [back(3), back(2), back(1)]);
  await failOn(db, billing, [back(2)]);
  const gaps = textsOf(await view(db, "coverage_gaps", project), "source days");
  expect(gaps.toSorted()).toEqual(["billing 1", "usage 3"]);
});

// For random slices of random series, the views are compared with a calculation day by day.

const DAYS = 14;
const seed = Math.floor(Math.random() * 2 ** 31);
const uniform = randomFrom(seed);
const random = (below: number) => Math.floor(uniform() * below);

/** A slice by its letter: its status, and whether it has numbers and was read after the end of its day. */
const SLICES = {
  c: { status: "complete", fetched: true, closed: true },
  // This day was read only before it was over (early).
  e: { status: "complete", fetched: true, closed: false },
  s: { status: "suspect", fetched: true, closed: true },
  f: { status: "failed", fetched: false, closed: false },
  F: { status: "failed", fetched: true, closed: true },
} as const;

type RandomSeries = {
  /** By days back, the letter of the slice or a space. */
  readonly slices: string;
  /** In days back; `dueThrough` may be the larger one (the earlier day), as after a clock was set back. */
  readonly dueFrom: number;
  readonly dueThrough: number;
};

const sliceOn = ({ slices }: RandomSeries, day: number) => SLICES[slices[day] as keyof typeof SLICES];

/** The expected status of a day and its reason; undefined if the views don't show the day. */
function shownOn(series: RandomSeries, day: number): string | undefined {
  const slice = sliceOn(series, day);
  const isDue = day <= series.dueFrom && day >= series.dueThrough;
  if (!slice) return isDue ? "missing" : undefined;
  if (isDue && slice.status === "complete" && !slice.closed) return "missing early";
  return slice.status === "failed" ? "failed down" : slice.status;
}

function textOf({ status, error }: ViewRow): string {
  return error === null ? `${status}` : `${status} ${error === "down" ? "down" : "early"}`;
}

/** The expected gaps, each with its text, first day, last day and length. */
function gapsOf(series: RandomSeries): readonly string[] {
  const gaps: { text: string; from: number; to: number }[] = [];
  for (let day = DAYS + 2; day >= 0; day--) {
    const text = shownOn(series, day) ?? "";
    const last = gaps.at(-1);
    if (last?.text === text) last.to = day;
    else gaps.push({ text, from: day, to: day });
  }
  const shown = gaps.filter(({ text }) => /^(missing|failed)/.test(text));
  return shown.map(({ text, from, to }) => `${text} ${back(from)} ${back(to)} ${from - to + 1}`).sort();
}

/** The day before the first due day that is not read, or the last due day if all are. */
function freshThrough(series: RandomSeries): Day | undefined {
  let day = series.dueFrom;
  while (day >= series.dueThrough && sliceOn(series, day)?.fetched && !shownOn(series, day)?.startsWith("missing"))
    day--;
  // The earlier one: back(day + 1) would be too late if dueThrough lies before dueFrom.
  return [back(day + 1), back(series.dueThrough)].sort()[0];
}

test(`coverage, gaps and freshness of 150 random series are those of a calculation day by day (seed ${seed})`, async () => {
  const all = Array.from({ length: 150 }, (): RandomSeries => {
    const isWhole = random(4) === 0;
    const letter = () => (isWhole ? "c" : ("  cccesfF"[random(9)] ?? ""));
    const slices = Array.from({ length: DAYS }, letter).join("");
    return { slices, dueFrom: random(DAYS + 2), dueThrough: 1 + random(4) };
  });
  const project = newProject();
  const filterOf = (i: number) => ({ name: `${i}`, features: {}, dimensions: { tags: `${i}` } });
  const series = all.map((_, i) => configured(project, "endpoint", { windowDays: 7, filter: filterOf(i) }));
  const ids: readonly number[] = await register(db, ...series);
  for (const [i, one] of all.entries()) {
    await setNextDue(ids[i] ?? 0, FUTURE);
    await sql`
      update usage_export.series set due_from = ${back(one.dueFrom)}::date, due_through = ${back(one.dueThrough)}::date
      where series_id = ${ids[i]}
    `.execute(db);
    // A space has no status and is left out.
    const stored = [...one.slices].map((_, day) => ({ ...sliceOn(one, day), day: back(day) }));
    await sql`
      insert into usage_export.slice (series_id, usage_date, status, fetched_at, closed_at, error)
      select ${ids[i]}, day, status, case when fetched then now() end, case when closed then now() end, case when status = 'failed' then 'down' end
      from json_to_recordset(${JSON.stringify(stored)}::json) as s (day date, status text, fetched boolean, closed boolean)
      where status is not null
    `.execute(db);
  }

  const byFilter = async (name: string) => Map.groupBy(await view(db, name, project), (row) => Number(row.filter));
  const [coverage, gaps, freshness] = await Promise.all(["coverage", "coverage_gaps", "freshness"].map(byFilter));
  for (const [i, one] of all.entries()) {
    const expected = Array.from({ length: DAYS + 3 }, (_, day) => [back(day), shownOn(one, day)] as const);
    const shown = (coverage?.get(i) ?? []).map((row) => [row.usage_date, textOf(row)] as const);
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(expected.filter(([, text]) => text)));
    const gapText = (row: ViewRow) => `${textOf(row)} ${row.from_date} ${row.to_date} ${row.days}`;
    expect((gaps?.get(i) ?? []).map(gapText).sort()).toEqual(gapsOf(one));
    expect(freshness?.get(i)?.map((row) => row.fresh_through)).toEqual([freshThrough(one)]);
  }
});
