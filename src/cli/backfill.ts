// The command `backfill`: reads the missing, the failed or all days of a range, and prints what is complete and what is left.

import type { App } from "../app.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { requireUnrotatedKeys } from "../config/secrets.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { sliceStatuses } from "../db/usage/due-slices.ts";
import { openExportContext } from "../jobs/context.ts";
import { discoverProjects, withKnownProjects } from "../jobs/discovery.ts";
import { executePlan } from "../jobs/export.ts";
import { withFanOutFilters } from "../jobs/fan-outs.ts";
import { withDatabase } from "../open-database.ts";
import { counted, durationText } from "../show/format.ts";
import { firstOf } from "../text.ts";
import { dayOf } from "../usage/days.ts";
import {
  type BackfillPlan,
  countStatuses,
  describeRequest,
  planBackfill,
  sliceCount,
  totalSliceCount,
  type UsageRequest,
} from "../usage/export-plan.ts";
import { seriesText } from "../usage/series.ts";
import type { SliceStatus } from "../usage/slice-decision.ts";
import { exportJson, exportText, type JobResult, withProgress } from "./export.ts";
import { writeAnswer } from "./output.ts";
import { type BackfillChoice, type BackfillOptions, chooseBackfill } from "./selection.ts";

/** After a stop or crash, running it again reads only what is left, except that `--only all` reads every day again. */
export async function runBackfill(app: App, options: BackfillOptions): Promise<number> {
  const loaded = await loadConfig(app.configPath);
  // Refuses wrong options before the database is opened. With discovery, an option may name a project that is not known yet.
  if (loaded.discovery.length === 0) chooseBackfill(loaded, options, dayOf(new Date()));
  if (!options.dryRun) await requireUnrotatedKeys(app, loaded);

  return withDatabase(app, async (db) => {
    const withProjects = options.dryRun ? await withKnownProjects(loaded, db) : await discoverProjects(app, loaded, db);
    const config = await withFanOutFilters(withProjects, db, { start: options.from, end: options.to });
    const today = dayOf(await databaseNow(db));
    const choice = chooseBackfill(config, options, today);
    for (const job of choice.windowless)
      app.log.warn({ job }, "left out: an export without a window can't ask for certain days");
    const statuses = await sliceStatuses(db, choice.jobs, choice.range);
    const plans = planBackfill(choice.jobs, choice.range, options.only, statuses, today);
    if (options.dryRun) {
      const rate = config.service.requestsPerSecond;
      const json = plans.map((plan) => planJson(plan, rate));
      writeAnswer(app, options, json, () => planText(plans, rate));
      return 0;
    }
    return readPlanned(app, config, db, { options, choice, plans });
  });
}

/** Makes the planned requests in this process. Even after a stop, writes what is complete and what is left. */
async function readPlanned(
  app: App,
  config: Config,
  db: Database,
  { options, choice, plans }: { options: BackfillOptions; choice: BackfillChoice; plans: readonly BackfillPlan[] },
): Promise<number> {
  const { from, to, only } = options;
  const results: JobResult[] = [];
  const writeResult = async () => {
    const counts = countStatuses(choice.jobs, choice.range, await sliceStatuses(db, choice.jobs, choice.range));
    const stopped = app.signal.aborted;
    const json = { from, to, only, stopped, jobs: results.map(exportJson), range: counts };
    writeAnswer(app, options, json, () => backfillText(options, results, counts, stopped));
    return counts;
  };
  const slices = totalSliceCount(plans.flatMap(({ plan }) => plan.requests));
  try {
    await withProgress("backfill", slices, async (onCounted) => {
      if (plans.length === 0) return;
      await using context = await openExportContext(app, config, db);
      for (const { job, plan } of plans) {
        results.push({ job, result: await executePlan(context, job, "backfill", plan, onCounted) });
      }
    });
  } catch (error) {
    // If writing the result fails, the stop is still the error to report.
    if (app.signal.aborted) await writeResult().catch(() => {});
    throw error;
  }
  const counts = await writeResult();
  // `--only failed` does not read missing days, so they do not count against it.
  return counts.failed + counts.suspect === 0 && (only === "failed" || counts.missing === 0) ? 0 : 1;
}

function backfillText(
  { from, to, only }: BackfillOptions,
  results: readonly JobResult[],
  counts: Readonly<Record<SliceStatus, number>>,
  isStopped: boolean,
): string {
  const { complete, suspect, failed, missing } = counts;
  const lines = results.map((one) => exportText(one).trimEnd());
  const rest = only === "all" ? "all days again" : "the rest";
  if (isStopped) lines.push(`stopped: what was read is stored; the same command reads ${rest}`);
  else if (results.length === 0) lines.push("nothing to do");
  const slices = `${counted(complete + suspect + failed + missing, "slice")}, ${complete} complete`;
  lines.push(`${from} to ${to}: ${slices}, ${suspect} suspect, ${failed} failed, ${missing} missing`);
  for (const status of ["failed", "suspect", "missing"] as const) {
    // No mode reads suspect days alone.
    const choice = status === "suspect" ? "all" : status;
    if (counts[status] > 0) lines.push(`  to read ${status} slices: the same command with --only ${choice}`);
  }
  return `${lines.join("\n")}\n`;
}

const REQUESTS_SHOWN_MAX = 20;

function planText(plans: readonly BackfillPlan[], rate: number): string {
  const requests = plans.flatMap(({ plan }) => plan.requests);
  const more = (count: number) => `and ${count} more requests; --json lists all`;
  const time = `${durationText(secondsNeeded(requests, rate))} at ${rate} a second`;
  const total = `would read ${counted(totalSliceCount(requests), "slice")} in ${counted(requests.length, "request")}: ${time}`;
  return [...firstOf(requests.map(requestText), REQUESTS_SHOWN_MAX, more), total, ""].join("\n");
}

function requestText(request: UsageRequest): string {
  const { start, end, ...series } = describeRequest(request);
  const days = start === end ? start : `${start} to ${end}`;
  return `${days} (${counted(sliceCount(request), "slice")}): ${seriesText(series)}`;
}

/** What the rate limit alone demands. A slow service takes longer. */
function secondsNeeded(requests: readonly UsageRequest[], rate: number): number {
  return Math.ceil(requests.length / rate);
}

function planJson({ job, plan: { requests } }: BackfillPlan, rate: number): object {
  const [slices, seconds] = [totalSliceCount(requests), secondsNeeded(requests, rate)];
  return { job: job.name, slices, seconds, requests: requests.map(describeRequest) };
}
