// Reads from a database what the checker needs: what every reader could have seen, and the status of slices and runs.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { METRICS } from "./answer-verdict.ts";
import { type StoredRun, sliceName, type Visible } from "./case-evidence.ts";
import { rowText } from "./history.ts";

/** The conditions of each filter as the service gets them, by the filter's name. */
export type Filters = Readonly<Record<string, string>>;

type Row = Readonly<Record<string, string | null>>;

const NUMBERS = sql.join(METRICS.map((metric) => sql`${sql.ref(metric)}::text`));
const DIMENSIONS = ["accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"];

export async function readEvidence(db: Database, filters: Filters) {
  const { rows: seen } = await sql<{ at: string }>`
    select distinct seen_at::text as at, seen_at from usage_export.row_revision order by seen_at
  `.execute(db);
  const moments: Visible[] = [];
  for (const { at } of seen) {
    const { rows } = await sql<Row>`
      select "grouping", filter, usage_date::text, group_value, ${NUMBERS} from bi.usage_as_of(${at}::timestamptz)
    `.execute(db);
    moments.push(visible(rows, filters));
  }
  const coverage = await statuses(db, filters);
  const { rows: runs } = await sql<StoredRun>`
    select status, slices_planned as planned, slices_complete as complete, slices_stale as stale from bi.runs where kind = 'export'
  `.execute(db);
  return { moments, now: await shownNow(db, filters), coverage, runs };
}

/** Reads the views instead of bi.usage_as_of: the two must agree. */
async function shownNow(db: Database, filters: Filters): Promise<Visible> {
  const byDimension = DIMENSIONS.map(
    (name) => sql`
      select ${name} as "grouping", null as filter, usage_date::text, ${sql.ref(name)} as group_value, ${NUMBERS}
      from ${sql.table(`bi.usage_by_${name}`)}
    `,
  );
  const { rows } = await sql<Row>`
    select 'none' as "grouping", null as filter, usage_date::text, null as group_value, ${NUMBERS} from bi.usage_total
    union all ${sql.join(byDimension, sql` union all `)}
    union all select "grouping", filter, usage_date::text, group_value, ${NUMBERS} from bi.usage_filtered
  `.execute(db);
  return visible(rows, filters);
}

/** The status of every slice that is due. */
export async function statuses(db: Database, filters: Filters): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<Row>`select "grouping", filter, usage_date::text, status from bi.coverage`.execute(db);
  return new Map(rows.map((row) => [nameOf(row, filters), row.status ?? ""]));
}

function visible(rows: readonly Row[], filters: Filters): Visible {
  const slices = Map.groupBy(rows, (row) => nameOf(row, filters));
  return new Map(
    [...slices].map(([slice, all]) => [slice, all.map((row) => rowText(row.group_value ?? null, row)).sort()]),
  );
}

function nameOf({ grouping, filter, usage_date }: Row, filters: Filters): string {
  const conditions = filter === null || filter === undefined ? "" : filters[filter];
  return sliceName(`${grouping} / ${conditions}`, usage_date ?? "");
}
