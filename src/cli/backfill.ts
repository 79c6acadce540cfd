import { type App, readConfig, withDatabase } from "../app.ts";
import { databaseNow } from "../db/database.ts";
import { sliceStatuses } from "../db/slice-statuses.ts";
import { withExportContext } from "../jobs/export-context.ts";
import { requireStaticKeys } from "../jobs/keys-in-use.ts";
import { type ExportContext, runExportJob } from "../jobs/run-export.ts";
import { dayOf } from "../usage/day.ts";
import type { RunCounts } from "../usage/export.ts";
import { slicesOf } from "../usage/plan.ts";
import { type BackfillMode, type JobPlan, planBackfill, type RangeState, rangeState } from "../usage/plan-backfill.ts";
import { enqueueBackfill } from "../worker/enqueue.ts";
import { enqueuedText, outcomeJson, outcomeText, planJson, planText } from "./backfill-answer.ts";
import { type BackfillOptions, chooseBackfill } from "./backfill-choice.ts";
import type { JobResult } from "./export-answer.ts";
import { doneOf, NOT_BEGUN, type Progress, progressBar, progressEvents } from "./progress.ts";

/**
 * Reads the days of a range that its mode names. What was stored before it was stopped or killed is not missing any more,
 * so running it again goes on where it was.
 */
export async function runBackfill(app: App, options: BackfillOptions): Promise<number> {
  const config = await readConfig(app);
  const { jobs, dateless, range } = chooseBackfill(config, options, dayOf(new Date()));
  if (!options.dryRun && !options.enqueue) await requireStaticKeys(app, config);
  for (const job of dateless) app.log.warn({ job }, "left out: an export without a window can't ask for days");

  return withDatabase(app, async (db) => {
    const series = jobs.flatMap((one) => one.series);
    const before = await sliceStatuses(db, series, range);
    const plans = planBackfill(jobs, range, options.only, before, dayOf(await databaseNow(db)));
    if (options.dryRun) {
      app.write(options.json ? `${JSON.stringify(planJson(plans))}\n` : planText(plans));
      return 0;
    }
    if (options.enqueue && plans.length > 0) {
      const enqueued = await enqueueBackfill(app, config, db, plans);
      app.write(options.json ? `${JSON.stringify(enqueued)}\n` : enqueuedText(enqueued));
      return 0;
    }
    const results: JobResult[] = [];
    const answer = async (isStopped: boolean) => {
      const after = plans.length > 0 ? await sliceStatuses(db, series, range) : before;
      const state = rangeState(jobs, range, after);
      const outcome = { options, configPath: app.configPath, results, state, isStopped };
      app.write(options.json ? `${JSON.stringify(outcomeJson(outcome))}\n` : outcomeText(outcome));
      return state;
    };
    try {
      if (plans.length > 0) await withExportContext(app, config, db, (context) => runPlans(context, plans, results));
    } catch (error) {
      // The person who stopped the command needs to know what is stored and how to continue. If that can't be read, the stop is
      // reported all the same.
      if (app.signal.aborted) await answer(true).catch(() => {});
      throw error;
    }
    return isDone(await answer(false), options.only) ? 0 : 1;
  });
}

/** Days that were never read are what the modes but `failed` are for. */
function isDone({ counts }: RangeState, only: BackfillMode): boolean {
  return counts.failed + counts.suspect === 0 && (only === "failed" || counts.missing === 0);
}

/** Adds the result of each job to `results` when the job ends, so that they are known after a stop. */
async function runPlans(context: ExportContext, plans: readonly JobPlan[], results: JobResult[]): Promise<void> {
  const planned = slicesOf(plans.flatMap(({ plan }) => plan.requests));
  const progress = openProgress(context.app, planned);
  let before = NOT_BEGUN;
  try {
    for (const { job, plan } of plans) {
      const onProgress = (counts: RunCounts) => progress.show(doneOf(counts, before));
      const result = await runExportJob({ ...context, onProgress }, job, "backfill", plan);
      before = doneOf(result, before);
      results.push({ job, result });
    }
  } finally {
    progress.stop();
  }
}

function openProgress(app: App, planned: number): Progress {
  return app.terminal ? progressBar("backfill", planned, process.stderr) : progressEvents(app.log, planned);
}
