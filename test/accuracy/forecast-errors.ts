// Measures the error of the forecast at mid-month, beside "last month again" and a straight line.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { madeUpUsage, sumOf } from "../../src/emulator/usage.ts";
import { addDays, type Day, daysOf, type Window } from "../../src/usage/days.ts";
import { madeUpDays, monthFrom, SHAPES } from "./made-up-series.ts";

/** A month of a series, and what was known of it and of the days before on the evening of its 15th day. */
type Case = {
  readonly month: Window;
  /** The final amounts of the month and of at least the month before. */
  readonly final: ReadonlyMap<Day, number>;
  /** What has arrived of a day so many days after it. */
  readonly arrived: (day: Day, daysAfter: number) => number;
  /** How much of a day has usually arrived so many days after it. */
  readonly knownShare: (daysAfter: number) => number;
};

type ErrorRow = {
  readonly name: string;
  readonly months: number;
  /** Median absolute errors, in percent of the month's final amount. */
  readonly forecast: number;
  readonly lastMonth: number;
  readonly straightLine: number;
  /** The largest error of nine in ten months. */
  readonly forecastNinth: number;
  /** How many of 100 months ended within the interval. */
  readonly inInterval: number;
};

const MONTHS = 24;
const HISTORY_DAYS = 120;
const DAYS_OVER = 15;
/** After three days the usage of a day is final. */
const LATE_SHARES = [0, 0.95, 0.99];

function madeUpCases(): ReadonlyMap<string, readonly Case[]> {
  return new Map(
    SHAPES.map((shape, s) => [
      shape,
      Array.from({ length: MONTHS }, (_, n) => {
        const month = monthFrom(2024, n);
        const window = { start: addDays(month.start, -HISTORY_DAYS), end: month.end };
        const step = { from: addDays(month.start, -20), to: addDays(month.start, 9) };
        const final = madeUpDays(shape, 100 * (s + 1) + n, window, step);
        const knownShare = (daysAfter: number) => LATE_SHARES[daysAfter] ?? 1;
        const arrived = (day: Day, daysAfter: number) => Math.floor((final.get(day) ?? 0) * knownShare(daysAfter));
        return { month, final, knownShare, arrived };
      }),
    ]),
  );
}

/** Usage of the emulator from seeds that nothing else uses. */
const HOLD_OUT_SEEDS = [7001, 7002, 7003, 7004, 7005, 7006];

type Metric = "requests" | "hours";
type SumOfDay = (day: Day, daysAfter: number) => ReturnType<typeof sumOf>;

function emulatorCases(): ReadonlyMap<string, readonly Case[]> {
  const sums = HOLD_OUT_SEEDS.map(sumsOf);
  return new Map(
    (["requests", "hours"] as const).map((metric) => [`emulator, ${metric}`, emulatorCasesOf(metric, sums)]),
  );
}

/** Each sum is reckoned once for all cases, because that takes most of their time. */
function sumsOf(seed: number): SumOfDay {
  const usage = madeUpUsage(seed);
  const sums = new Map<string, ReturnType<typeof sumOf>>();
  return (day, daysAfter) => {
    const age = Math.min(daysAfter, 3);
    const sum = sums.get(`${day} ${age}`) ?? sumOf(usage("hold-out", day, age));
    sums.set(`${day} ${age}`, sum);
    return sum;
  };
}

function emulatorCasesOf(metric: Metric, sums: readonly SumOfDay[]): readonly Case[] {
  return sums.flatMap((sumOfDay) => {
    const arrived = (day: Day, daysAfter: number) => sumOfDay(day, daysAfter)[metric];
    return [2, 5, 8, 11].map((n): Case => {
      const month = monthFrom(2025, n);
      const days = daysOf({ start: addDays(month.start, -70), end: month.end });
      const before = days.filter((day) => day < month.start);
      const sumAfter = (daysAfter: number) => before.reduce((sum, day) => sum + arrived(day, daysAfter), 0);
      return {
        month,
        final: new Map(days.map((day) => [day, arrived(day, 3)])),
        arrived,
        knownShare: (daysAfter) => sumAfter(daysAfter) / sumAfter(3),
      };
    });
  });
}

async function errorRow(db: Database, name: string, cases: readonly Case[]): Promise<ErrorRow> {
  const measured: Awaited<ReturnType<typeof errorsOf>>[] = [];
  for (const one of cases) measured.push(await errorsOf(db, one));
  const percent = (pick: (errors: (typeof measured)[number]) => number, quantile = 0.5) =>
    round(100 * quantileOf(measured.map(pick), quantile));
  return {
    name,
    months: cases.length,
    forecast: percent(({ forecast }) => forecast),
    lastMonth: percent(({ lastMonth }) => lastMonth),
    straightLine: percent(({ straightLine }) => straightLine),
    forecastNinth: percent(({ forecast }) => forecast, 0.9),
    inInterval: Math.round((100 * measured.filter(({ isIn }) => isIn).length) / cases.length),
  };
}

async function errorsOf(db: Database, { month, final, arrived, knownShare }: Case) {
  const today = addDays(month.start, DAYS_OVER);
  const known = daysOf({ start: addDays(today, -70), end: addDays(today, -1) });
  // On its evening a day is read for the first time, so that today has been over for no day.
  const daysAfter = (day: Day) => daysOf({ start: day, end: today }).length - 1;
  const amounts = known.map((day) => arrived(day, daysAfter(day)));
  const { rows } = await sql<{ forecast: string; low: string; high: string }>`
    select forecast::text, low::text, high::text from usage_export.month_forecast(
      ${today}::text::date, ${known}::text[]::date[], ${amounts.map(String)}::text[]::numeric[],
      ${known.map((day) => String(knownShare(daysAfter(day))))}::text[]::numeric[])
  `.execute(db);
  const actual = sumIn(final, month);
  const error = (estimate: number) => Math.abs(estimate / actual - 1);
  const previous = { start: `${addDays(month.start, -1).slice(0, 8)}01`, end: addDays(month.start, -1) };
  const soFar = known.reduce((sum, day, i) => sum + (day >= month.start ? (amounts[i] ?? 0) : 0), 0);
  const { forecast, low, high } = rows[0] ?? { forecast: "NaN", low: "NaN", high: "NaN" };
  return {
    forecast: error(Number(forecast)),
    lastMonth: error(sumIn(final, previous)),
    straightLine: error((soFar / DAYS_OVER) * daysOf(month).length),
    isIn: Number(low) <= actual && actual <= Number(high),
  };
}

function sumIn(amounts: ReadonlyMap<Day, number>, window: Window): number {
  return daysOf(window).reduce((sum, day) => sum + (amounts.get(day) ?? 0), 0);
}

function quantileOf(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * quantile;
  const [low = Number.NaN, high = low] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at % 1);
}

function round(percent: number): number {
  return Math.round(10 * percent) / 10;
}

/** The table in docs/forecast.md. */
export async function forecastTable(db: Database): Promise<string> {
  const rows: ErrorRow[] = [];
  for (const [name, cases] of [...madeUpCases(), ...emulatorCases()]) rows.push(await errorRow(db, name, cases));
  const percent = (value: number) => `${value.toFixed(1)} %`;
  return [
    "| Usage | Months | Forecast | Last month again | Straight line | Forecast, 9 of 10 months | In the interval |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...rows.map(({ name, months, forecast, lastMonth, straightLine, forecastNinth, inInterval }) =>
      [
        `| ${name} | ${months} | ${percent(forecast)} | ${percent(lastMonth)} | ${percent(straightLine)}`,
        `${percent(forecastNinth)} | ${inInterval} % |`,
      ].join(" | "),
    ),
  ].join("\n");
}
