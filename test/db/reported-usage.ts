// Stores the usage of several series at once, for tests of reports.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import type { Day, Window } from "../../src/usage/days.ts";
import type { Filter, Grouping, Project } from "../../src/usage/series.ts";
import { type Usage as AnyUsage, configured, type Numbers, register, setDue, store } from "./stored-usage.ts";

/** By day, pairs of a value of the grouping's dimension and its numbers. The value is ignored for a total. */
export type Usage = Readonly<Record<Day, readonly (readonly [value: unknown, numbers: Numbers])[]>>;

export const DIARIZED: Filter = { name: "diarized", features: { diarize: "true" }, dimensions: {} };

/** Deletes all stored usage, keys, prices and budgets: a report is about every series, so each test starts without any. */
export async function forgetAll(db: Database): Promise<void> {
  await sql`
    truncate usage_export.configured, usage_export.series, usage_export.slice, usage_export.slice_row, usage_export.superseded_row,
      usage_export.api_key, usage_export.listed_key, usage_export.price, usage_export.budget cascade
  `.execute(db);
}

type StoredSeries = {
  readonly project: Project;
  readonly grouping: Grouping;
  readonly filter?: Filter;
  readonly windowDays?: number;
  readonly usage?: AnyUsage;
  /** The days that are due; none if it is left out. */
  readonly due?: Window;
};

/** Makes these the only configured series, and stores their usage. Returns their ids. */
export async function storeSeries(db: Database, stored: readonly StoredSeries[]): Promise<readonly number[]> {
  const ids = await register(db, ...stored.map((part) => configured(part.project, part.grouping, part)));
  for (const [i, { due, usage }] of stored.entries()) {
    const seriesId = ids[i] ?? 0;
    if (due) await setDue(db, [seriesId], due.start, due.end);
    if (usage && Object.keys(usage).length > 0) await store(db, seriesId, usage);
  }
  return ids;
}
