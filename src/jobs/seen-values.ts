// Turns the fan-out filters of exports into filters for the values that stored usage has, and registers the series.

import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { type StoredValue, storedValues } from "../db/usage/seen-values.ts";
import { addDays, type Day, dayOf, type Window } from "../usage/days.ts";
import type { ExportJob } from "../usage/plan.ts";
import {
  type FanOut,
  type Filter,
  filterKey,
  type Seen,
  type SeenValue,
  type SeenValues,
  seenFilter,
} from "../usage/series.ts";

const VALUE_LENGTH_MAX = 256;

/**
 * The configuration with the values that were seen on the days of each job's window, by the database's clock, and on the
 * days that a person asks for. Without fan-outs the database is not asked.
 */
export async function withSeenValues(config: Config, db: Database, asked?: Window): Promise<Config> {
  if (config.exports.every(({ fanOuts = [] }) => fanOuts.length === 0)) return config;
  const today = dayOf(await databaseNow(db));
  const named = new Map(config.exports.flatMap(({ filters }) => filters).map((one) => [filterKey(one), one]));
  const exports: ExportJob[] = [];
  for (const job of config.exports) exports.push({ ...job, seen: await readSeen(db, job, named, today, asked) });
  return { ...config, exports };
}

/** For the start of a run: of which fan-outs not every value that was seen is read. */
export function warnOfLeftOut(log: Logger, { name, projects, seen, fanOuts = [] }: ExportJob): void {
  for (const { id, name: project } of projects) {
    for (const { dimension, values, leftOut } of seen?.get(id) ?? []) {
      if (leftOut === 0) continue;
      const atMost = fanOuts.find((one) => one.dimension === dimension)?.atMost;
      const fields = { job: name, project, each: dimension, read: values.length, leftOut, atMost };
      log.warn(fields, "more values were seen than the filter reads: those with the most requests are read");
    }
  }
}

/** By filterKey, the filters that are configured with a name. */
type NamedFilters = ReadonlyMap<string, Filter>;

async function readSeen(
  db: Database,
  job: ExportJob,
  named: NamedFilters,
  today: Day,
  asked: Window | undefined,
): Promise<Seen> {
  const seen = new Map<string, readonly SeenValues[]>();
  if (!job.window) return seen;
  const { days, today: isTodayRead } = job.window;
  const window = { start: addDays(today, -days), end: isTodayRead ? today : addDays(today, -1) };
  const ids = job.projects.map(({ id }) => id);
  for (const fanOut of job.fanOuts ?? []) {
    const ofWindow = await storedValues(db, ids, fanOut.dimension, window);
    const ofAsked = asked ? await storedValues(db, ids, fanOut.dimension, asked) : [];
    for (const id of ids) {
      const [recent, others] = [ofWindow, ofAsked].map((all) => all.filter(({ projectId }) => projectId === id));
      const values = seenValues(job, fanOut, named, recent ?? [], others ?? []);
      seen.set(id, [...(seen.get(id) ?? []), values]);
    }
  }
  return seen;
}

/** `recent` and `asked` have those with the most requests first. */
function seenValues(
  job: ExportJob,
  { dimension, atMost }: FanOut,
  named: NamedFilters,
  recent: readonly StoredValue[],
  asked: readonly StoredValue[],
): SeenValues {
  const filtersOfJob = new Set(job.filters.map(filterKey));
  const values = new Map<string, SeenValue>();
  for (const [all, isRecent] of [
    [recent, true],
    [asked, false],
  ] as const) {
    for (const { value, firstDay, lastRead } of all.filter(isFit).slice(0, atMost)) {
      const filter = seenFilter(dimension, value);
      const key = filterKey(filter);
      if (filtersOfJob.has(key) || values.has(key)) continue;
      // A configured filter with the same condition keeps its name.
      values.set(key, {
        filter: named.get(key) ?? filter,
        days: isRecent ? { start: firstDay, end: lastRead } : undefined,
      });
    }
  }
  const leftOut = recent.length - Math.min(recent.filter(isFit).length, atMost);
  return { dimension, values: [...values.values()], leftOut };
}

/** Whether a configured filter could have the value: people type it, and read it in logs. */
function isFit({ value }: StoredValue): boolean {
  return (
    /^\S(?:.*\S)?$/u.test(value) && !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(value) && value.length <= VALUE_LENGTH_MAX
  );
}
