// Reads a report's headline amounts: of each project from the one series that was chosen for it.

import { sql } from "kysely";
import type { MetricTotal } from "../report/report-data.ts";
import type { Window } from "../usage/day.ts";
import type { ReportSeries } from "./report-series.ts";
import type { Tx } from "./transaction.ts";

const TOTAL_METRICS = ["hours", "tokens_in", "tokens_out", "tts_characters", "requests"] as const;

type Sums = Readonly<Record<MetricTotal["metric"], string | null>>;

export async function readTotals(
  tx: Tx,
  sources: readonly ReportSeries[],
  before: Window,
  period: Window,
): Promise<readonly MetricTotal[]> {
  const [now, then] = [await readSums(tx, sources, period), await readSums(tx, sources, before)];
  return TOTAL_METRICS.map((metric) => ({ metric, amount: now?.[metric] ?? null, before: then?.[metric] ?? null }));
}

async function readSums(tx: Tx, sources: readonly ReportSeries[], window: Window): Promise<Sums | undefined> {
  if (sources.length === 0) return undefined;
  const usage = [...Map.groupBy(sources, ({ grouping }) => grouping)].map(
    ([grouping, series]) => sql`
      select ${sql.join(TOTAL_METRICS.map((metric) => sql.ref(metric)))}
      from ${sql.id("bi", grouping === "none" ? "usage_total" : `usage_by_${grouping}`)}
      where project_id = any(${series.map(({ projectId }) => projectId)}::text[])
        and usage_date between ${window.start}::date and ${window.end}::date
    `,
  );
  const sums = TOTAL_METRICS.map((metric) => sql`trim_scale(sum(${sql.ref(metric)}))::text as ${sql.ref(metric)}`);
  const { rows } = await sql<Sums>`
    select ${sql.join(sums)} from (${sql.join(usage, sql` union all `)}) usage
  `.execute(tx);
  return rows[0];
}
