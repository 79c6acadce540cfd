// Stores the usage of several series at once, for tests of reports.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { markDue, registerSeries, seriesIdOf } from "../../src/db/usage/stored-series.ts";
import type { NormalisedSlice } from "../../src/usage/answer-rows.ts";
import type { Day, Window } from "../../src/usage/days.ts";
import type { Filter, Grouping, Project } from "../../src/usage/series.ts";
import { configured, type Numbers, rowOf, rowsOn, store, total } from "./stored-usage.ts";

export const DIARIZED: Filter = { name: "diarized", features: { diarize: "true" }, dimensions: {} };

/** Deletes all stored usage: a report is about every series, so each test starts without any. */
export async function forgetAll(db: Database): Promise<void> {
  await sql`
    truncate usage_export.configured, usage_export.series, usage_export.slice, usage_export.snapshot_row, usage_export.superseded_row,
      usage_export.api_key, usage_export.listed_key cascade
  `.execute(db);
}

/** The rows of each day: the value of the grouping's dimension, which is not used for the total, and the numbers. */
export type Usage = Readonly<Record<Day, readonly (readonly [value: unknown, numbers: Numbers])[]>>;

type StoredSeries = {
  readonly project: Project;
  readonly grouping: Grouping;
  readonly filter?: Filter;
  readonly windowDays?: number;
  readonly usage?: Usage;
  /** The days that are due; none if it is left out. */
  readonly due?: Window;
};

/** Makes these the only configured series, and stores their usage. Returns their ids. */
export async function storeSeries(db: Database, stored: readonly StoredSeries[]): Promise<readonly number[]> {
  const all = stored.map((part) => ({ part, one: configured(part.project, part.grouping, part) }));
  const ids = await registerSeries(
    db,
    all.map(({ one }) => one),
  );
  for (const { part, one } of all) {
    const seriesId = seriesIdOf(ids, one.series);
    const { due, usage = {} } = part;
    if (due) await markDue(db, [seriesId], { first: due.start, oldest: due, through: due.end });
    await storeUsage(db, seriesId, part.grouping, usage);
  }
  return all.map(({ one }) => seriesIdOf(ids, one.series));
}

/** Stores the usage as the next answer for the series. */
export async function storeUsage(db: Database, seriesId: number, grouping: Grouping, usage: Usage): Promise<void> {
  const slices = Object.entries(usage).map(([day, rows]): NormalisedSlice => {
    if (grouping !== "none")
      return rowsOn(
        day,
        rows.map(([value, numbers]) => rowOf(value, numbers, null, grouping)),
      );
    const [first] = rows;
    return first ? total(day, first[1]) : rowsOn(day, []);
  });
  if (slices.length > 0) await store(db, seriesId, slices, { grouping });
}
