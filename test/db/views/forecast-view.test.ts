// bi.usage_forecast and the functions below it, on histories that each test makes.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { madeUpUsage, randomFrom, sumOf } from "../../../src/emulator/usage.ts";
import { addDays, type Day, daysOf, type Window } from "../../../src/usage/days.ts";
import { TOLERANCES } from "../../../src/usage/metrics.ts";
import { ageStoredData } from "../../cli/age-stored-data.ts";
import { testDatabase } from "../../support/database.ts";
import { storeSeries } from "../reported-usage.ts";
import { daysBack, newProject, newSeries, store, view } from "../stored-usage.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);
const today = back(0);
const monthStart = `${today.slice(0, 8)}01`;
const monthDays = daysOf({ start: monthStart, end: addDays(`${addDays(monthStart, 31).slice(0, 8)}01`, -1) });

type Forecast = Readonly<Record<"amount" | "forecast" | "low" | "high", number | null>> & { readonly ahead: number };

/** What usage_export.month_forecast returns. All days but `unknown` are known. */
async function forecastOf(
  now: Day,
  amounts: ReadonlyMap<Day, string>,
  unknown: readonly Day[] = [],
): Promise<Forecast> {
  const days = [...amounts.keys()];
  const [row] = await read(sql<Forecast>`
    select amount::float8, forecast::float8, low::float8, high::float8, days_ahead as ahead
    from usage_export.month_forecast(${now}::text::date, ${days}::text[]::date[],
      ${[...amounts.values()]}::text[]::numeric[], ${days.map((day) => !unknown.includes(day))}::boolean[])
  `);
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

test("steady usage is forecast to go on, with no interval", async () => {
  const forecast = await forecastOf("2026-03-11", constant(before("2026-03-11", 60), "7"));
  expect(forecast).toEqual({ amount: 70, forecast: 217, low: 217, high: 217, ahead: 21 });
});

test("a day that may lack usage is estimated at no less than what is stored", async () => {
  const amounts = new Map([...constant(before("2026-03-11", 60), "100"), ["2026-03-10", "80"], ["2026-03-11", "150"]]);
  const forecast = await forecastOf("2026-03-11", amounts, ["2026-03-10", "2026-03-11"]);
  expect(forecast).toMatchObject({ amount: 1130, forecast: 3150, ahead: 22 });
});

test("a day of the month that was not read is estimated, too", async () => {
  const days = before("2026-03-11", 60).filter((day) => day !== "2026-03-05");
  expect(await forecastOf("2026-03-11", constant(days, "7"))).toMatchObject({ amount: 63, forecast: 217, ahead: 22 });
});

test("an amount of many digits stays exact", async () => {
  const exact = "9007199254740993.000000001";
  const days = daysOf({ start: "2026-03-01", end: "2026-03-30" });
  const rows = await read(sql`
    select amount::text, forecast = round(amount + ${exact}::numeric, 6) as "addsOneDay"
    from usage_export.month_forecast('2026-03-31', ${days}::text[]::date[], array_fill(${exact}::numeric, array[30]), array_fill(true, array[30]))
  `);
  expect(rows).toEqual([{ amount: "270215977642229790.000000030", addsOneDay: true }]);
});

test("a forecast needs 14 known days", async () => {
  const none = { forecast: null, low: null, high: null };
  expect(await forecastOf("2026-03-14", constant(before("2026-03-14", 13), "1"))).toEqual({
    amount: 13,
    ...none,
    ahead: 18,
  });
  expect(await forecastOf("2026-03-14", constant([], "1"))).toEqual({ amount: 0, ...none, ahead: 31 });
  expect(await forecastOf("2026-03-15", constant(before("2026-03-15", 14), "1"))).toMatchObject({ forecast: 31 });
});

test("a single spike among days without usage is not forecast to repeat each day", async () => {
  const amounts = new Map([...constant(before("2026-03-11", 60), "0"), ["2026-03-09", "50"]]);
  const { forecast } = await forecastOf("2026-03-11", amounts);
  expect(forecast).toBeGreaterThanOrEqual(50);
  // Up to twice what one spike in 14 days adds on the 21 days that are left.
  expect(forecast).toBeLessThan(50 + 2 * 50 * (21 / 14));
});

test("bi.usage_forecast has one row for each metric of the total", async () => {
  const project = newProject();
  const usage = Object.fromEntries(
    before(today, 75).map((day) => [day, [["", { requests: "100", hours: "0.25" }]] as const]),
  );
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
  await sql`delete from usage_export.slice where usage_date = ${addDays(monthStart, -1)}::date`.execute(db);
  expect(await view(db, "usage_forecast", project)).toMatchObject([{ amount_before: null }, { amount_before: null }]);
});

test("bi.usage_forecast does not take the first reading of a day for all of its usage", async () => {
  const { project, seriesId } = await newSeries(db, "none", { windowDays: 2 });
  // Each day had 80 on the first morning, and 100 from the second one on.
  for (let n = 0; n < 40; n++) {
    await ageStoredData(db, 1);
    await store(db, seriesId, { [back(1)]: { requests: "80" }, ...(n > 0 && { [back(2)]: { requests: "100" } }) });
  }
  const [row] = await view(db, "usage_forecast", project);
  expect(Number(row?.forecast)).toBe(100 * monthDays.length);
});

// Forecasts and anomalies on made-up usage of known shapes, and on the emulator's: how far off forecasts are, and which days are found.

type Shape = (uniform: () => number) => (day: Day, n: number) => number;

const isWeekend = (day: Day) => [0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay());

const SHAPES = {
  flat: () => () => 1,
  growth: (uniform) => {
    const aDay = 0.003 + 0.007 * uniform();
    return (_, n) => (1 + aDay) ** n;
  },
  "weekday pattern": (uniform) => {
    const weekend = 0.1 + 0.4 * uniform();
    return (day) => (isWeekend(day) ? weekend : 1);
  },
  spiky: (uniform) => (day) => (isWeekend(day) ? 0.7 : 1) * (uniform() < 0.06 ? 3 + 5 * uniform() : 1),
} satisfies Record<string, Shape>;
type ShapeName = keyof typeof SHAPES;

const NOISE: Readonly<Record<ShapeName, number>> = { flat: 0.1, growth: 0.1, "weekday pattern": 0.12, spiky: 0.25 };

function madeUpDays(shape: ShapeName, seed: number, window: Window): ReadonlyMap<Day, number> {
  const uniform = randomFrom(seed);
  const amountOf = SHAPES[shape](uniform);
  // The sum of three random numbers is nearly normal. Exact methods take logarithms, whose last digit may differ between machines.
  const normal = () => (uniform() + uniform() + uniform() - 1.5) * 2;
  const noise = () => Math.max(0.05, 1 + NOISE[shape] * normal());
  return new Map(daysOf(window).map((day, n) => [day, Math.round(10_000 * amountOf(day, n) * noise())]));
}

function emulatorDays(seed: number, window: Window): ReadonlyMap<Day, number> {
  const usage = madeUpUsage(seed);
  return new Map(daysOf(window).map((day) => [day, sumOf(usage("hold-out", day, 3)).requests]));
}

const MONTHS: readonly Window[] = ["01-31", "04-30", "07-31", "10-31"].map((end) => ({
  start: `2025-${end.slice(0, 2)}-01`,
  end: `2025-${end}`,
}));
const DAYS_OVER = 15;
/** The shares of the newest two days that have arrived, the newest first. The newest day is given as not known, the other as known. */
const ARRIVED = [0.95, 0.99];

/** How far off the forecast and "last month again" are at mid-month, as shares of the month's final amount. */
async function errorsOf(month: Window, final: ReadonlyMap<Day, number>) {
  const today = addDays(month.start, DAYS_OVER);
  const known = daysOf({ start: addDays(today, -70), end: addDays(today, -1) });
  const amounts = known.map((day, i) => Math.floor((final.get(day) ?? 0) * (ARRIVED[known.length - 1 - i] ?? 1)));
  const arrived = new Map(known.map((day, i) => [day, String(amounts[i])]));
  const { forecast, low, high } = await forecastOf(today, arrived, known.slice(-1));
  const sumIn = (window: Window) => daysOf(window).reduce((sum, day) => sum + (final.get(day) ?? 0), 0);
  const actual = sumIn(month);
  const before = sumIn({ start: addDays(month.start, -daysOf(month).length), end: addDays(month.start, -1) });
  const error = (estimate: number) => Math.abs(estimate / actual - 1);
  const isIn = Number(low) <= actual && actual <= Number(high);
  return { forecast: error(Number(forecast)), lastMonth: error(before), isIn };
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

// The median of a dozen months may be twice as large with another seed, so shapes that are made quickly have 200 months.
test.each([
  ["flat", 200, 0.03],
  ["growth", 200, 0.04],
  ["weekday pattern", 200, 0.03],
  ["spiky", 200, 0.12],
  ["emulator", 12, 0.03],
] as const)(
  "for usage of the shape %s, the forecast at mid-month of %i months is off by less than %f in most of them",
  async (shape, count, errorMax) => {
    const errors: Awaited<ReturnType<typeof errorsOf>>[] = [];
    for (let n = 0; n < count; n++) {
      const month = MONTHS[n % MONTHS.length] as Window;
      const window = { start: addDays(month.start, -120), end: month.end };
      const final = shape === "emulator" ? emulatorDays(7001 + n, window) : madeUpDays(shape, n, window);
      errors.push(await errorsOf(month, final));
    }
    const forecast = median(errors.map((error) => error.forecast));
    expect(forecast).toBeLessThan(errorMax);
    expect(forecast).toBeLessThan(median(errors.map((error) => error.lastMonth)) ?? 0);
    expect(errors.filter(({ isIn }) => isIn).length).toBeGreaterThanOrEqual(errors.length / 2);
  },
);

const HISTORY_DAYS = 56;
const JUDGED = { start: addDays("2025-01-01", HISTORY_DAYS), end: addDays("2025-01-01", HISTORY_DAYS + 79) };
/** Changes that are planted in single days, as shares of the day's amount. */
const CHANGES = [-1, -0.8, -0.3, 0.3, 1, 3];

async function judge(amounts: ReadonlyMap<Day, number>) {
  const rows = await read(sql<{ day: Day; verdict: string }>`
    select judged::text as day, verdict
    from (select ${[...amounts.keys()]}::text[]::date[] as days, ${[...amounts.values()].map(String)}::text[]::numeric[] as amounts) series
    cross join unnest(days, amounts) with ordinality as one (judged, amount, nth)
    cross join lateral usage_export.judge_day(judged, amount, days[(nth - ${HISTORY_DAYS})::integer:(nth - 1)::integer],
      amounts[(nth - ${HISTORY_DAYS})::integer:(nth - 1)::integer], ${TOLERANCES.normal}::integer, 100)
    where judged >= ${JUDGED.start}::text::date
  `);
  return new Map(rows.map(({ day, verdict }) => [day, verdict]));
}

test("days with none, a fifth or four times of their usage are found", async () => {
  const window = { start: "2025-01-01", end: JUDGED.end };
  const series = (["flat", "weekday pattern"] as const).map((shape, n) => madeUpDays(shape, 900 + n, window));
  for (const amounts of [...series, emulatorDays(7007, window)]) {
    const planted = new Map(CHANGES.map((change, i) => [addDays(JUDGED.start, 10 + 12 * i), change]));
    const changed = [...amounts].map(([day, all]) => [day, Math.round(all * (1 + (planted.get(day) ?? 0)))] as const);
    const verdicts = await judge(new Map(changed));
    for (const [day, change] of planted) {
      if (change <= -0.8) expect([day, verdicts.get(day)]).toEqual([day, "low"]);
      if (change >= 3) expect([day, verdicts.get(day)]).toEqual([day, "high"]);
    }
    const alarms = [...verdicts].filter(([day, verdict]) => !planted.has(day) && /^(high|low)$/.test(verdict));
    expect(alarms.length, JSON.stringify(alarms)).toBeLessThanOrEqual(2);
  }
});
