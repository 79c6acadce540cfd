// Compares each export's window with how late the service has changed its numbers.

import type { Database } from "../db/connection/database.ts";
import { runOn } from "../db/connection/transaction.ts";
import { restatementCurves } from "../facts/restatements.ts";
import { counted } from "../show/format.ts";
import { type ExportJob, seriesOf } from "../usage/plan.ts";
import type { Grouping, Series } from "../usage/series.ts";
import { adviseWindow, KNOWN_SHARE_ENOUGH, type WindowAdvice } from "../usage/window-advice.ts";

export type JobAdvice = WindowAdvice & { readonly job: string; readonly windowDays: number };

/** For the exports whose window should be longer or may be shorter. */
export async function adviseWindows(db: Database, exports: readonly ExportJob[]): Promise<readonly JobAdvice[]> {
  const advice: JobAdvice[] = [];
  for (const job of exports) {
    // What is known of late numbers is known of usage alone.
    if (!job.window || job.source !== "usage") continue;
    const advised = adviseWindow(job.window.days, await restatementCurves(runOn(db), seriesToCompare(job)));
    if (advised) advice.push({ job: job.name, windowDays: job.window.days, ...advised });
  }
  return advice;
}

/** The history of every group is read, so the grouping that usually has the fewest groups comes first. */
const FEWEST_GROUPS_FIRST: readonly Grouping[] = ["none", "method", "deployment", "endpoint", "model"];

/** Late usage is late in every grouping, so one grouping is enough. */
function seriesToCompare(job: ExportJob): Series[] {
  const grouping = FEWEST_GROUPS_FIRST.find((one) => job.groupings.includes(one)) ?? job.groupings[0];
  return grouping ? seriesOf(job, { groupings: [grouping] }) : [];
}

const ENOUGH_TEXT = `${(KNOWN_SHARE_ENOUGH * 100).toFixed(1)} % of the numbers`;

export function renderAdvice({ advice, windowDays, days, knownAfterDays, restsOnDays }: JobAdvice): string {
  const set = `"window": { "days": ${days} }`;
  return advice === "longer"
    ? `${counted(windowDays, "day")} may be too few: over ${restsOnDays} final days ${ENOUGH_TEXT} was known no sooner than ${counted(knownAfterDays, "day")} after the day, and what comes later is not read; consider ${set}`
    : `${counted(windowDays, "day")} is more than needed: over ${restsOnDays} final days ${ENOUGH_TEXT} was known ${counted(knownAfterDays, "day")} after the day; ${set} would do`;
}
