// What `status` reads: the same views that BI tools read, so that both say the same.

import { sql } from "kysely";
import type { Day } from "../usage/day.ts";
import type { Database } from "./database.ts";

export type LastRun = {
  readonly job: string;
  readonly kind: string;
  readonly trigger: string;
  readonly status: string;
  readonly startedAt: Date;
  readonly finishedAt: Date | null;
  readonly error: string | null;
};

export async function lastRuns(db: Database): Promise<readonly LastRun[]> {
  const { rows } = await sql<LastRun>`
    select distinct on (kind, job) job, kind, trigger, status, started_at as "startedAt", finished_at as "finishedAt", error
    from bi.runs order by kind, job, started_at desc
  `.execute(db);
  return rows;
}

export type CoverageCounts = Readonly<Record<"complete" | "suspect" | "failed" | "missing", number>>;

export async function coverageCounts(db: Database): Promise<CoverageCounts> {
  const { rows } = await sql<{ status: keyof CoverageCounts; slices: number }>`
    select status, count(*)::integer as slices from bi.coverage group by status
  `.execute(db);
  return {
    complete: 0,
    suspect: 0,
    failed: 0,
    missing: 0,
    ...Object.fromEntries(rows.map((row) => [row.status, row.slices])),
  };
}

export type Gap = {
  readonly project: string;
  readonly grouping: string;
  readonly filter: string;
  readonly status: string;
  readonly from: Day;
  readonly to: Day;
  readonly error: string | null;
};

/** The stretches of days that are missing or failed, the newest first. */
export async function coverageGaps(db: Database): Promise<readonly Gap[]> {
  const { rows } = await sql<Gap>`
    select project, "grouping", filter, status, from_date as "from", to_date as "to", error
    from bi.coverage_gaps order by to_date desc, project, "grouping", filter
  `.execute(db);
  return rows;
}
