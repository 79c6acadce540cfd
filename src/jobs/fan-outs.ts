// Turns the fan-out filters of exports into filters for the values that stored usage has.

import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { type StoredValue, storedValues } from "../db/usage/stored-series.ts";
import { toPrintableLine } from "../text.ts";
import { dayOf, type Window } from "../usage/days.ts";
import { type ExportJob, type LeftOut, windowOf } from "../usage/export-plan.ts";
import { type Filter, filterKey, seenFilter } from "../usage/series.ts";

const VALUE_LENGTH_MAX = 256;

/** Gives each job a filter for each value with usage in the job's window (by the database's clock) or on the days that a person picked. */
export async function withFanOutFilters(config: Config, db: Database, pickedDays?: Window): Promise<Config> {
  if (config.exports.every(({ fanOuts = [] }) => fanOuts.length === 0)) return config;
  const today = dayOf(await databaseNow(db));
  const filters = config.exports.flatMap((job) => job.filters);
  const names = new Map(filters.map((filter) => [filterKey(filter), filter.name]));
  const exports = await Array.fromAsync(config.exports, async (job) => ({
    ...job,
    ...(await readSeen(db, job, names, windowOf(job, today), pickedDays)),
  }));
  return { ...config, exports };
}

export function warnOfValuesLeftOut(log: Logger, { name: job, leftOut = [] }: ExportJob): void {
  const text = "more values were seen than the filter reads: those with the most requests are read";
  for (const { dimension: each, ...counts } of leftOut) log.warn({ job, each, ...counts }, text);
}

/** `names`: the name of each configured filter, by its `filterKey`. */
async function readSeen(
  db: Database,
  job: ExportJob,
  names: ReadonlyMap<string, string>,
  window: Window | undefined,
  pickedDays: Window | undefined,
) {
  const { projects, fanOuts = [] } = job;
  const seen = new Map<string, readonly Filter[]>();
  const leftOut: LeftOut[] = [];
  const filtersOfJob = new Set(job.filters.map(filterKey));
  const ids = projects.map(({ id }) => id);
  for (const fanOut of fanOuts) {
    const { dimension, atMost } = fanOut;
    const seenOn = async (days: Window | undefined) =>
      Map.groupBy(days ? await storedValues(db, ids, fanOut, days) : [], ({ projectId }) => projectId);
    const recent = await seenOn(window);
    const onPickedDays = await seenOn(pickedDays);
    for (const { id, name: project } of projects) {
      // The values with the most requests come first. Each has the `valueCount` of its project.
      const inWindow = recent.get(id) ?? [];
      const usable = inWindow.filter(isUsable);
      const top = usable.slice(0, atMost);
      const picked = (onPickedDays.get(id) ?? []).filter(isUsable).slice(0, atMost);
      const due = new Map(top.map(({ value, firstDay, readUntil }) => [value, { start: firstDay, end: readUntil }]));
      const filters = [...new Set([...top, ...picked].map(({ value }) => value))]
        .map((value) => seenFilter(dimension, value, due.get(value)))
        .filter((filter) => !filtersOfJob.has(filterKey(filter)))
        // If the same filter is configured for another job, its name is used here, too.
        .map((filter) => ({ ...filter, name: names.get(filterKey(filter)) ?? filter.name }));
      seen.set(id, [...(seen.get(id) ?? []), ...filters]);
      const unusable = inWindow.length - usable.length;
      const unread = (inWindow[0]?.valueCount ?? 0) - unusable - top.length;
      if (unread > 0) leftOut.push({ project, dimension, atMost, read: top.length, leftOut: unread });
    }
  }
  return { seen, leftOut };
}

/** Whether the value could also be written into the configuration: people type it, and read it in logs. */
function isUsable({ value }: StoredValue): boolean {
  return value !== "" && toPrintableLine(value) === value && value.length <= VALUE_LENGTH_MAX;
}
