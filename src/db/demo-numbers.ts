// What the demo shows of the views at its end.

import { sql } from "kysely";
import type { Database } from "./database.ts";

export type DemoNumbers = {
  readonly slices: number;
  readonly complete: number;
  readonly gaps: number;
  readonly restatements: number;
  readonly differences: number;
  readonly latest: LatestTotal | undefined;
};

export type LatestTotal = {
  readonly usage_date: string;
  readonly requests: string;
  readonly hours: string;
  readonly finality: string;
  readonly revision: number;
};

export async function demoNumbers(db: Database): Promise<DemoNumbers> {
  const { rows } = await sql<Omit<DemoNumbers, "latest">>`
    select (select count(*)::integer from bi.coverage) as slices,
      (select count(*)::integer from bi.coverage where status = 'complete') as complete,
      (select count(*)::integer from bi.coverage_gaps) as gaps,
      (select count(*)::integer from bi.restatements) as restatements,
      (select count(*)::integer from bi.reconciliation) as differences
  `.execute(db);
  const { rows: latest } = await sql<LatestTotal>`
    select usage_date, requests, hours, finality, revision from bi.usage_total order by usage_date desc, project limit 1
  `.execute(db);
  const counts = rows[0] ?? { slices: 0, complete: 0, gaps: 0, restatements: 0, differences: 0 };
  return { ...counts, latest: latest[0] };
}
