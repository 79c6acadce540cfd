// Turns the fan-out filters of exports into filters for the values that stored usage has.

import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { type StoredValue, storedValues } from "../db/usage/stored-series.ts";
import { toPrintableLine } from "../text.ts";
import { type Day, dayOf, type Window } from "../usage/days.ts";
import { type ExportJob, windowOf } from "../usage/plan.ts";
import { type Filter, filterKey, type Seen, type SeenValue, type SeenValues, seenFilter } from "../usage/series.ts";

const VALUE_LENGTH_MAX = 256;

/**
 * The configuration with the values that were seen on the days of each job's window, by the database's clock, and on `askedDays`. Without
 * fan-outs the database is not asked.
 */
export async function withSeenValues(config: Config, db: Database, askedDays?: Window): Promise<Config> {
  if (config.exports.every(({ fanOuts = [] }) => fanOuts.length === 0)) return config;
  const today = dayOf(await databaseNow(db));
  const filters = config.exports.flatMap((job) => job.filters);
  const configured = new Map(filters.map((filter) => [filterKey(filter), filter]));
  const exports: ExportJob[] = [];
  for (const job of config.exports)
    exports.push({ ...job, seen: await readSeen(db, job, configured, today, askedDays) });
  return { ...config, exports };
}

/** Warns about each fan-out that left values out because of `atMost`. */
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

/** `configured` are the filters of the configuration by their filterKey. */
async function readSeen(
  db: Database,
  job: ExportJob,
  configured: ReadonlyMap<string, Filter>,
  today: Day,
  askedDays: Window | undefined,
): Promise<Seen> {
  const seen = new Map<string, readonly SeenValues[]>();
  const window = windowOf(job, today);
  if (!window) return seen; // Fan-outs need a window: checks.ts refuses them without.
  const ids = job.projects.map(({ id }) => id);
  const filtersOfJob = new Set(job.filters.map(filterKey));
  for (const fanOut of job.fanOuts ?? []) {
    const { dimension, atMost } = fanOut;
    const seenOn = async (days: Window | undefined) =>
      Map.groupBy(days ? await storedValues(db, ids, fanOut, days) : [], ({ projectId }) => projectId);
    const [recent, onAskedDays] = [await seenOn(window), await seenOn(askedDays)];
    for (const id of ids) {
      const values = new Map<string, SeenValue>();
      const add = (value: string, days: Window | undefined) => {
        const filter = seenFilter(dimension, value);
        const key = filterKey(filter);
        // A configured filter with the same condition keeps its name.
        if (!filtersOfJob.has(key) && !values.has(key))
          values.set(key, { filter: configured.get(key) ?? filter, days });
      };
      // The values with the most requests come first.
      const [inWindow, onOtherDays] = [recent.get(id) ?? [], onAskedDays.get(id) ?? []];
      const usable = inWindow.filter(isUsable);
      const read = usable.slice(0, atMost);
      for (const { value, firstDay, lastRead } of read) add(value, { start: firstDay, end: lastRead });
      // Not seen in the window, so without days.
      for (const { value } of onOtherDays.filter(isUsable).slice(0, atMost)) add(value, undefined);
      const unusable = inWindow.length - usable.length;
      const leftOut = (inWindow[0]?.valuesOfProject ?? 0) - unusable - read.length;
      seen.set(id, [...(seen.get(id) ?? []), { dimension, values: [...values.values()], leftOut }]);
    }
  }
  return seen;
}

/** Whether a configured filter could have the value: people type it, and read it in logs. */
function isUsable({ value }: StoredValue): boolean {
  return value !== "" && toPrintableLine(value) === value && value.length <= VALUE_LENGTH_MAX;
}
