// Runs an export job now, in this process, and shows on a terminal how far it is.

import { databaseNow } from "../db/database.ts";
import { unsettledDays } from "../db/slice-statuses.ts";
import { type ExportContext, runExportJob } from "../jobs/run-export.ts";
import { dayOf } from "../usage/day.ts";
import type { ExportResult, RunCounts, RunTrigger } from "../usage/export.ts";
import { type ExportJob, planRun, type Selection, seriesOf, slicesOf } from "../usage/plan.ts";
import { doneOf, progressBar } from "./progress.ts";

type Wanted = { readonly trigger: RunTrigger; readonly selection: Selection; readonly label?: string };

export async function runNow(
  context: ExportContext,
  job: ExportJob,
  { trigger, selection, label = job.name }: Wanted,
): Promise<ExportResult> {
  // The database's clock is the one all replicas share.
  const today = dayOf(await databaseNow(context.db));
  const plan = planRun(job, today, selection, await unsettledDays(context.db, seriesOf(job, selection), today));
  const progress = progressBar(label, slicesOf(plan.requests), process.stderr);
  const onProgress = (counts: RunCounts) => progress.show(doneOf(counts));
  try {
    return await runExportJob({ ...context, onProgress }, job, trigger, plan);
  } finally {
    progress.stop();
  }
}
