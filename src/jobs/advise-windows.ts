// Compares each export's window with how late the service has changed its numbers.

import type { Database } from "../db/database.ts";
import { restatementCurves } from "../db/restatement-curves.ts";
import { type ExportJob, seriesOf } from "../usage/plan.ts";
import type { Grouping, Series } from "../usage/series.ts";
import { adviseWindow, ENOUGH_SHARE, type WindowAdvice } from "../usage/window-advice.ts";

export type JobAdvice = WindowAdvice & { readonly job: string; readonly windowDays: number };

/** Of the exports whose window should be another. */
export async function adviseWindows(db: Database, exports: readonly ExportJob[]): Promise<readonly JobAdvice[]> {
  const advice: JobAdvice[] = [];
  for (const job of exports) {
    if (!job.window) continue;
    const advised = adviseWindow(job.window.days, await restatementCurves(db, tellingSeries(job)));
    if (advised) advice.push({ job: job.name, windowDays: job.window.days, ...advised });
  }
  return advice;
}

/** By how few groups they have, as a rule: each has its history to be looked through. */
const FEWEST_GROUPS_FIRST: readonly Grouping[] = ["none", "method", "deployment", "endpoint", "model"];

/** Late usage is late in every grouping, so one of them tells. */
function tellingSeries(job: ExportJob): Series[] {
  const grouping = FEWEST_GROUPS_FIRST.find((one) => job.groupings.includes(one)) ?? job.groupings[0];
  return grouping ? seriesOf(job, { groupings: [grouping] }) : [];
}

const ENOUGH = `${(ENOUGH_SHARE * 100).toFixed(1)} % of the numbers`;

export function renderAdvice({ advice, windowDays, days, knownAfterDays, restsOnDays }: JobAdvice): string {
  const set = `"window": { "days": ${days} }`;
  return advice === "longer"
    ? `${counted(windowDays)} may be too few: over ${restsOnDays} final days ${ENOUGH} was known no sooner than ${counted(knownAfterDays)} after the day, and what comes later is not read; consider ${set}`
    : `${counted(windowDays)} is more than needed: over ${restsOnDays} final days ${ENOUGH} was known ${counted(knownAfterDays)} after the day; ${set} would do`;
}

function counted(days: number): string {
  return days === 1 ? "1 day" : `${days} days`;
}
