// bi.usage_forecast and the functions below it, on histories that each test makes.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { addDays, type Day, daysOf } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { storeSeries, type Usage } from "../reported-usage.ts";
import { daysBack, newProject, newSeries, store, total, type ViewRow, view } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const today = back(0);
const monthStart = `${today.slice(0, 8)}01`;
const monthDays = daysOf({ start: monthStart, end: lastDayOfMonth() });

function lastDayOfMonth(): Day {
  const [year = 0, month = 0] = today.split("-").map(Number);
  return new Date(Date.UTC(year, month, 0)).toISOString().slice(0, 10);
}

type Forecast = Readonly<Record<"amount" | "forecast" | "low" | "high", number | null>> & { readonly ahead: number };

/** What usage_export.month_forecast returns. All days but `unknown` are known. */
async function forecastOf(
  now: Day,
  amounts: ReadonlyMap<Day, string>,
  unknown: readonly Day[] = [],
): Promise<Forecast> {
  const days = [...amounts.keys()];
  const { rows } = await sql<Forecast>`
    select amount::float8, forecast::float8, low::float8, high::float8, days_ahead as ahead
    from usage_export.month_forecast(${now}::text::date, ${days}::text[]::date[],
      ${[...amounts.values()]}::text[]::numeric[], ${days.map((day) => !unknown.includes(day))}::boolean[])
  `.execute(db);
  const [row] = rows;
  if (!row) throw new Error("no row");
  return row;
}

/** The days before `now`, the newest first. */
function before(now: Day, count: number): Day[] {
  return Array.from({ length: count }, (_, n) => addDays(now, -1 - n));
}

function constant(days: readonly Day[], amount: string): ReadonlyMap<Day, string> {
  return new Map(days.map((day) => [day, amount]));
}

test("steady usage goes on, and what is sure has no interval", async () => {
  const forecast = await forecastOf("2026-03-11", constant(before("2026-03-11", 60), "7"));
  expect(forecast).toEqual({ amount: 70, forecast: 217, low: 217, high: 217, ahead: 21 });
});

test("a day that may lack usage is estimated, and what is stored of it is the least", async () => {
  const amounts = new Map([...constant(before("2026-03-11", 60), "100"), ["2026-03-10", "80"], ["2026-03-11", "150"]]);
  const forecast = await forecastOf("2026-03-11", amounts, ["2026-03-10", "2026-03-11"]);
  expect(forecast).toMatchObject({ amount: 1130, forecast: 3150, ahead: 22 });
});

test("a day of the month that was not read is estimated, too", async () => {
  const days = before("2026-03-11", 60).filter((day) => day !== "2026-03-05");
  expect(await forecastOf("2026-03-11", constant(days, "7"))).toMatchObject({ amount: 63, forecast: 217, ahead: 22 });
});

test("an amount of many digits stays exact, and a month that is over and final is no estimate", async () => {
  const exact = "9007199254740993.000000001";
  const days = daysOf({ start: "2026-03-01", end: "2026-03-30" });
  const { rows } = await sql<ViewRow>`
    select amount::text, forecast = round(amount + ${exact}::numeric, 6) as sure
    from usage_export.month_forecast('2026-03-31', ${days}::text[]::date[], array_fill(${exact}::numeric, array[30]), array_fill(true, array[30]))
  `.execute(db);
  expect(rows).toEqual([{ amount: "270215977642229790.000000030", sure: true }]);
});

test("with less than 14 known days there is an amount and no forecast", async () => {
  const none = { forecast: null, low: null, high: null };
  expect(await forecastOf("2026-03-14", constant(before("2026-03-14", 13), "1"))).toEqual({
    amount: 13,
    ...none,
    ahead: 18,
  });
  expect(await forecastOf("2026-03-14", constant([], "1"))).toEqual({ amount: 0, ...none, ahead: 31 });
  expect(await forecastOf("2026-03-15", constant(before("2026-03-15", 14), "1"))).toMatchObject({ forecast: 31 });
});

test("no usage at all on most days makes no forecast of spikes", async () => {
  const amounts = new Map([...constant(before("2026-03-11", 60), "0"), ["2026-03-09", "50"]]);
  const { forecast } = await forecastOf("2026-03-11", amounts);
  expect(forecast).toBeGreaterThanOrEqual(50);
  expect(forecast).toBeLessThan(50 + 2 * 50 * (21 / 14));
});

const DAILY = { requests: "100", hours: "0.25" };

function usageOf(days: readonly Day[]): Usage {
  return Object.fromEntries(days.map((day) => [day, [[undefined, DAILY]]]));
}

test("bi.usage_forecast has one row a metric with usage, of the series by none", async () => {
  const project = newProject();
  const usage = usageOf(before(today, 75));
  await storeSeries(db, [
    { project, grouping: "none", usage },
    { project, grouping: "tags", usage },
  ]);
  const rows = await view(db, "usage_forecast", project);
  const daysOver = monthDays.filter((day) => day < today).length;
  const daysBefore = new Date(new Date(monthStart).getTime() - 1).getUTCDate();
  expect(rows.map(({ metric, unfiltered, grouping }) => ({ metric, unfiltered, grouping }))).toEqual([
    { metric: "hours", unfiltered: true, grouping: "none" },
    { metric: "requests", unfiltered: true, grouping: "none" },
  ]);
  expect(rows[1]).toMatchObject({ month: monthStart, days_known: daysOver, days_ahead: monthDays.length - daysOver });
  const numbers = ["amount", "forecast", "low", "high", "amount_before"].map((name) => Number(rows[1]?.[name]));
  const month = 100 * monthDays.length;
  expect(numbers).toEqual([100 * daysOver, month, month, month, 100 * daysBefore]);
});

const MOMENTS = {
  slice: ["closed_at", "fetched_at"],
  snapshot_row: ["last_changed_at"],
  superseded_row: ["last_changed_at", "superseded_at"],
};

/** Makes all that is stored of the series a day older. In two steps, as no two days may be the same in between. */
async function makeDayOlder(seriesId: number): Promise<void> {
  for (const [table, columns] of Object.entries(MOMENTS)) {
    const older = columns.map((column) => `${column} = ${column} - interval '24 hours'`);
    await sql`
      update ${sql.table(`usage_export.${table}`)} set usage_date = usage_date - 10000, ${sql.raw(older.join())}
      where series_id = ${seriesId}
    `.execute(db);
    await sql`
      update ${sql.table(`usage_export.${table}`)} set usage_date = usage_date + 9999 where series_id = ${seriesId}
    `.execute(db);
  }
}

test("bi.usage_forecast does not take the first reading of a day for all of its usage", async () => {
  const { project, seriesId } = await newSeries(db, "none", { windowDays: 2 });
  // Each day had 80 on the first morning, and 100 from the second one on.
  const read = (day: Day, requests: string) =>
    store(db, seriesId, [total(day, { requests })], { grouping: "none", cliffGuard: "off" });
  for (let n = 0; n < 40; n++) {
    await makeDayOlder(seriesId);
    await read(back(1), "80");
    if (n > 0) await read(back(2), "100");
  }
  const [row] = await view(db, "usage_forecast", project);
  expect(Number(row?.forecast)).toBe(100 * monthDays.length);
});
