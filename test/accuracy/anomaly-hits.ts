// Measures how many of 40 planted changes are found on 1,000 days, and how many other days are called unusual.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { madeUpUsage, sumOf } from "../../src/emulator/usage.ts";
import { SENSITIVITIES, TOLERANCES } from "../../src/usage/anomalies.ts";
import { addDays, type Day, daysOf } from "../../src/usage/days.ts";
import { madeUpDays } from "./made-up-series.ts";
import { randomFrom } from "./random.ts";

const HISTORY_DAYS = 56;
const JUDGED_DAYS = 200;
const WINDOW = { start: "2025-01-01", end: addDays("2025-01-01", HISTORY_DAYS + JUDGED_DAYS - 1) };
/** The planted changes of each series, as a share of the day's amount. */
const CHANGES = [-1, -0.8, -0.5, -0.3, 0.3, 0.5, 1, 3];

type Judged = { readonly day: Day; readonly sensitivity: string; readonly verdict: string };
type Series = { readonly amounts: ReadonlyMap<Day, number>; readonly planted: ReadonlyMap<Day, number> };

function madeUpSeries(): readonly Series[] {
  const shapes = ["flat", "growth", "weekday pattern", "noisy"] as const;
  const usage = madeUpUsage(7007);
  const ofEmulator = new Map(daysOf(WINDOW).map((day) => [day, sumOf(usage("hold-out", day, 3)).requests]));
  return [...shapes.map((shape, n) => madeUpDays(shape, 900 + n, WINDOW)), ofEmulator].map(plantChanges);
}

/** In each of as many equal parts of the days one change, on a day of chance. */
function plantChanges(amounts: ReadonlyMap<Day, number>, n: number): Series {
  const random = randomFrom(950 + n);
  const days = daysOf(WINDOW).slice(HISTORY_DAYS);
  const partDays = JUDGED_DAYS / CHANGES.length;
  const planted = new Map(
    CHANGES.map((change, i) => [days[Math.floor(partDays * (i + random.uniform()))] ?? WINDOW.end, change]),
  );
  const changed = [...amounts].map(
    ([day, amount]) => [day, Math.round(amount * (1 + (planted.get(day) ?? 0)))] as const,
  );
  return { amounts: new Map(changed), planted };
}

async function judge(db: Database, { amounts }: Series): Promise<readonly Judged[]> {
  const days = [...amounts.keys()];
  const { rows } = await sql<Judged>`
    select judged::text as day, sensitivity, verdict
    from (select ${days}::text[]::date[] as days, ${[...amounts.values()].map(String)}::text[]::numeric[] as amounts) series
    cross join unnest(days, amounts) with ordinality as one (judged, amount, nth)
    cross join lateral (select (nth - ${HISTORY_DAYS})::integer as first, (nth - 1)::integer as last) as before
    cross join unnest(${SENSITIVITIES}::text[], ${SENSITIVITIES.map((name) => TOLERANCES[name])}::integer[]) as setting (sensitivity, tolerance)
    cross join lateral usage_export.judge_day(judged, amount, days[first:last], amounts[first:last], tolerance, 100)
    where judged >= ${addDays(WINDOW.start, HISTORY_DAYS)}::text::date
  `.execute(db);
  return rows;
}

/** The table in docs/forecast.md. */
export async function anomalyTable(db: Database): Promise<string> {
  const all: (Judged & { readonly change: number | undefined })[] = [];
  for (const series of madeUpSeries()) {
    for (const judged of await judge(db, series)) all.push({ ...judged, change: series.planted.get(judged.day) });
  }
  const counts = (change: number | undefined, isHit: (verdict: string) => boolean) =>
    SENSITIVITIES.map((name) => {
      const ofSetting = all.filter((one) => one.sensitivity === name && one.change === change);
      return `${ofSetting.filter(({ verdict }) => isHit(verdict)).length} of ${ofSetting.length}`;
    }).join(" | ");
  const lines = CHANGES.map((change) => {
    const name = change === -1 ? "no usage" : `${change > 0 ? "+" : "−"}${Math.abs(change) * 100} %`;
    return `| found: ${name} | ${counts(change, (verdict) => verdict === (change > 0 ? "high" : "low"))} |`;
  });
  const isAlarm = (verdict: string) => verdict === "high" || verdict === "low";
  return [
    `| Days | ${SENSITIVITIES.map((name) => `\`${name}\``).join(" | ")} |`,
    "| --- | --- | --- | --- |",
    ...lines,
    `| false alarms | ${counts(undefined, isAlarm)} |`,
  ].join("\n");
}
