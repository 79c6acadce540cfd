// The private tables as they are read: what pg returns for each type, with the parsers that database.ts sets.

import type { ColumnType, Generated, GeneratedAlways } from "kysely";
import type { Day } from "../usage/day.ts";

/** numeric and bigint come as text, so that no digit is lost. */
type Numeric = string;
type Instant = ColumnType<Date, Date, Date>;

interface SeriesTable {
  series_id: GeneratedAlways<number>;
  project_id: string;
  project: string;
  grouping: string;
  filter_key: string;
  filter: string;
  window_days: number | null;
  due_from: Day | null;
  due_through: Day | null;
  next_due_at: Date | null;
  retired_at: Date | null;
  superseded_at: Date | null;
  created_at: Generated<Date>;
}

interface SliceTable {
  series_id: number;
  usage_date: Day;
  status: "complete" | "suspect" | "failed";
  fetch_no: Generated<Numeric>;
  fetched_at: Date | null;
  closed_at: Date | null;
  content_hash: string | null;
  rows: Generated<number>;
  error: string | null;
  suspect_run: string | null;
  attempted_at: Generated<Date>;
}

interface RunTable {
  run_id: string;
  kind: "export" | "rotation";
  job: string;
  trigger: "schedule" | "manual" | "catchup" | "backfill";
  scheduled_for: Date | null;
  started_at: Generated<Instant>;
  heartbeat_at: Generated<Date>;
  finished_at: Date | null;
  status: Generated<"running" | "ok" | "failed" | "stopped">;
  requests: Generated<number>;
  slices_planned: Generated<number>;
  slices_complete: Generated<number>;
  slices_suspect: Generated<number>;
  slices_failed: Generated<number>;
  rows_changed: Generated<Numeric | number>;
  error: string | null;
}

export interface Tables {
  "usage_export.series": SeriesTable;
  "usage_export.slice": SliceTable;
  "usage_export.run": RunTable;
}
