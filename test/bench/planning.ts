// How long it takes to plan 10,000 due slices: only deciding on the requests, and the whole tick of a worker, after which the requests
// are in the queue. In one case every second day is missing, so that each slice needs a request; in the other a range of days.

import { type RawBuilder, sql } from "kysely";
import { distinctSeries, planBackfill } from "../../src/usage/backfill.ts";
import { addDays, type Day, dayCount, dayOf, daysOf } from "../../src/usage/days.ts";
import { type ExportPlan, planRun, totalSliceCount } from "../../src/usage/plan.ts";
import { seriesKey } from "../../src/usage/series.ts";
import { tick } from "../../src/worker/tick.ts";
import { openConfigFolder } from "./config-folder.ts";
import { median, type NewDatabase, ratio, secondsOf } from "./figures.ts";
import { configOf, GROUPINGS, KEY } from "./pipeline.ts";
import { type Prepared, prepareDatabase } from "./prepared-database.ts";
import { storeSlices } from "./stored-slices.ts";
import { withWorkerContext } from "./worker-context.ts";

const WORKLOAD = { projects: 100, days: 7, cap: 4 };
const SERIES = WORKLOAD.projects * GROUPINGS.length;
const SLICES = 10_000;
const DAYS_MISSING = SLICES / SERIES;
const DAYS = 2 * DAYS_MISSING;
const ROUNDS = 5;
const CONFIG = configOf("http://127.0.0.1:1", WORKLOAD);

type Gaps = {
  readonly name: string;
  readonly isMissing: (back: number) => boolean;
  /** In SQL: whether the day `back` days ago is stored, which is the opposite of `isMissing`. */
  readonly there: RawBuilder<boolean>;
  /** The expected number of requests for all series. */
  readonly requests: number;
};

const EACH_ALONE: Gaps = {
  name: "every second day",
  isMissing: (back) => back % 2 === 1,
  there: sql`back % 2 = 0`,
  requests: SLICES,
};
const ONE_STRETCH: Gaps = {
  name: "one stretch of days",
  isMissing: (back) => back <= DAYS_MISSING,
  there: sql`back > ${sql.lit(DAYS_MISSING)}`,
  requests: SERIES,
};

type Seconds = Readonly<Record<"run" | "backfill" | "tick", number>>;

export async function measurePlanning(newDatabase: NewDatabase): Promise<string[]> {
  const taken = new Map<Gaps, Seconds[]>([
    [EACH_ALONE, []],
    [ONE_STRETCH, []],
  ]);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [gaps, rounds] of taken) rounds.push(await measureRound(gaps, await newDatabase()));
  }
  const secondsFor = (gaps: Gaps, what: keyof Seconds) => median((taken.get(gaps) ?? []).map((one) => one[what]));
  const ms = (gaps: Gaps, what: keyof Seconds) => {
    const seconds = secondsFor(gaps, what);
    return `${(seconds * 1_000).toFixed(1).padStart(9)} ms ${ratio(seconds, secondsFor(ONE_STRETCH, what))}`;
  };
  return [
    `${SLICES.toLocaleString("en")} due slices of ${SERIES} series; ratios to one stretch:`,
    `  ${"".padEnd(34)}${["planRun", "planBackfill", "tick to queued"].map((text) => text.padStart(21)).join("")}`,
    ...[...taken.keys()].map(
      (gaps) =>
        `  ${`${gaps.name}, ${gaps.requests} requests`.padEnd(34)}${ms(gaps, "run")}${ms(gaps, "backfill")}${ms(gaps, "tick")}`,
    ),
  ];
}

async function measureRound(gaps: Gaps, databaseUrl: string): Promise<Seconds> {
  await using prepared = await prepareDatabase(databaseUrl, CONFIG);
  await storeSlices(prepared.db, { days: DAYS, there: gaps.there });
  return { ...(await decide(gaps, prepared)), tick: await tickOnce(gaps, databaseUrl) };
}

/** Plans without the database. */
async function decide(gaps: Gaps, { config }: Prepared): Promise<Pick<Seconds, "run" | "backfill">> {
  const jobs = distinctSeries(config.exports, {});
  const today = dayOf(new Date());
  const range = { start: addDays(today, -DAYS), end: addDays(today, -1) };
  const isMissing = (day: Day) => gaps.isMissing(dayCount({ start: day, end: today }) - 1);
  const [missing, there] = [daysOf(range).filter(isMissing), daysOf(range).filter((day) => !isMissing(day))];
  const slices = Object.fromEntries(there.map((day) => [day, "complete"] as const));
  const known = new Map(jobs.flatMap(({ series }) => series.map((one) => [seriesKey(one), slices] as const)));

  const secondsToPlan = (plan: () => readonly ExportPlan[]) =>
    secondsOf(async () => {
      const requests = plan().flatMap((one) => one.requests);
      requireWhole(gaps, { requests: requests.length, slices: totalSliceCount(requests) });
    });
  return {
    run: await secondsToPlan(() => config.exports.map((job) => planRun(job, today, { days: missing }))),
    backfill: await secondsToPlan(() => planBackfill(jobs, range, "missing", known, today).map(({ plan }) => plan)),
  };
}

async function tickOnce(gaps: Gaps, databaseUrl: string): Promise<number> {
  await using folder = await openConfigFolder(CONFIG);
  const env = { DATABASE_URL: databaseUrl, LOG_LEVEL: "warn", KEY };
  return withWorkerContext(env, folder.file, async (context) => {
    const seconds = await secondsOf(() => tick(context));
    const { rows } = await sql<{ requests: number; slices: number }>`
      select ${gaps.requests} as requests, slices_planned as slices from bi.runs
    `.execute(context.db);
    requireWhole(gaps, rows[0]);
    return seconds;
  });
}

function requireWhole(
  { requests }: Gaps,
  planned: { readonly requests: number; readonly slices: number } | undefined,
): void {
  const expected = { requests, slices: SLICES };
  if (planned?.requests === requests && planned.slices === SLICES) return;
  throw new Error(`expected ${JSON.stringify(expected)} to be planned; got ${JSON.stringify(planned)}`);
}
