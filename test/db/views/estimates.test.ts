// Forecast and anomalies on made-up usage of known shapes and the emulator's: how far off the estimates are, and what is found.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { madeUpUsage, sumOf } from "../../../src/emulator/usage.ts";
import { addDays, type Day, daysOf, type Window } from "../../../src/usage/days.ts";
import { TOLERANCES } from "../../../src/usage/metrics.ts";
import { testDatabase } from "../../support/database.ts";
import { type Random, randomFrom } from "../../support/random.ts";

const { db } = await testDatabase();

type Shape = (random: Random) => (day: Day, n: number) => number;

const isWeekend = (day: Day) => [0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay());

const SHAPES = {
  flat: () => () => 1,
  growth: (random) => {
    const aDay = 0.003 + 0.007 * random.uniform();
    return (_, n) => (1 + aDay) ** n;
  },
  "weekday pattern": (random) => {
    const weekend = 0.1 + 0.4 * random.uniform();
    return (day) => (isWeekend(day) ? weekend : 1);
  },
  spiky: (random) => (day) => (isWeekend(day) ? 0.7 : 1) * (random.uniform() < 0.06 ? 3 + 5 * random.uniform() : 1),
} satisfies Record<string, Shape>;
type ShapeName = keyof typeof SHAPES;

const NOISE: Readonly<Record<ShapeName, number>> = { flat: 0.1, growth: 0.1, "weekday pattern": 0.12, spiky: 0.25 };

function madeUpDays(shape: ShapeName, seed: number, window: Window): ReadonlyMap<Day, number> {
  const random = randomFrom(seed);
  const amountOf = SHAPES[shape](random);
  const noise = () => Math.max(0.05, 1 + NOISE[shape] * random.normal());
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
/** How much of the newest days has arrived, the newest first. A forecast takes none but the last as it is. */
const ARRIVED = [0.95, 0.99];

/** How far off the forecast and "last month again" are at mid-month, as shares of what the month then was. */
async function errorsOf(month: Window, final: ReadonlyMap<Day, number>) {
  const today = addDays(month.start, DAYS_OVER);
  const known = daysOf({ start: addDays(today, -70), end: addDays(today, -1) });
  const amounts = known.map((day, i) => Math.floor((final.get(day) ?? 0) * (ARRIVED[known.length - 1 - i] ?? 1)));
  const { rows } = await sql<{ forecast: number; low: number; high: number }>`
    select forecast::float8, low::float8, high::float8 from usage_export.month_forecast(
      ${today}::text::date, ${known}::text[]::date[], ${amounts.map(String)}::text[]::numeric[], ${known.map((_, i) => i < known.length - 1)}::boolean[])
  `.execute(db);
  const { forecast = Number.NaN, low = Number.NaN, high = Number.NaN } = rows[0] ?? {};
  const sumIn = (window: Window) => daysOf(window).reduce((sum, day) => sum + (final.get(day) ?? 0), 0);
  const actual = sumIn(month);
  const before = sumIn({ start: addDays(month.start, -daysOf(month).length), end: addDays(month.start, -1) });
  const error = (estimate: number) => Math.abs(estimate / actual - 1);
  return { forecast: error(forecast), lastMonth: error(before), isIn: low <= actual && actual <= high };
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

test.each([
  ["flat", 0.03],
  ["growth", 0.04],
  ["weekday pattern", 0.03],
  ["spiky", 0.12],
  ["emulator", 0.03],
] as const)(
  "the forecast at mid-month of usage that is %s is off by less than %f in most months",
  async (shape, most) => {
    const errors: Awaited<ReturnType<typeof errorsOf>>[] = [];
    for (const [n, month] of [...MONTHS, ...MONTHS, ...MONTHS].entries()) {
      const window = { start: addDays(month.start, -120), end: month.end };
      const final = shape === "emulator" ? emulatorDays(7001 + n, window) : madeUpDays(shape, 100 + n, window);
      errors.push(await errorsOf(month, final));
    }
    const forecast = median(errors.map((error) => error.forecast));
    expect(forecast).toBeLessThan(most);
    expect(forecast).toBeLessThan(median(errors.map((error) => error.lastMonth)) ?? 0);
    expect(errors.filter(({ isIn }) => isIn).length).toBeGreaterThanOrEqual(errors.length / 2);
  },
);

const HISTORY_DAYS = 56;
const JUDGED = { start: addDays("2025-01-01", HISTORY_DAYS), end: addDays("2025-01-01", HISTORY_DAYS + 79) };
/** Planted in single days, as a share of the day's amount. */
const CHANGES = [-1, -0.8, -0.3, 0.3, 1, 3];

async function judge(amounts: ReadonlyMap<Day, number>) {
  const { rows } = await sql<{ day: Day; verdict: string }>`
    select judged::text as day, verdict
    from (select ${[...amounts.keys()]}::text[]::date[] as days, ${[...amounts.values()].map(String)}::text[]::numeric[] as amounts) series
    cross join unnest(days, amounts) with ordinality as one (judged, amount, nth)
    cross join lateral usage_export.judge_day(judged, amount, days[(nth - ${HISTORY_DAYS})::integer:(nth - 1)::integer],
      amounts[(nth - ${HISTORY_DAYS})::integer:(nth - 1)::integer], ${TOLERANCES.normal}::integer, 100)
    where judged >= ${JUDGED.start}::text::date
  `.execute(db);
  return new Map(rows.map(({ day, verdict }) => [day, verdict]));
}

test("days with none, a fifth or four times of their usage are found, and few usual days are called unusual", async () => {
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
