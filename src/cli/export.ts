// The command `export`: runs export jobs now, in this process, and prints the results.

import type { App } from "../app.ts";
import { loadConfig } from "../config/config.ts";
import { requireUnrotatedKeys } from "../config/secrets.ts";
import { databaseNow } from "../db/connection/database.ts";
import { deleteOldRecords } from "../db/jobs/runs.ts";
import { type ExportContext, openExportContext } from "../jobs/context.ts";
import { discoverProjects } from "../jobs/discovery.ts";
import { daysToReread, type ExportResult, executePlan, type RequestReason } from "../jobs/export.ts";
import { warnOfValuesLeftOut, withFanOutFilters } from "../jobs/fan-outs.ts";
import { withDatabase } from "../open-database.ts";
import { counted, durationText } from "../show/format.ts";
import { firstOf, truncate } from "../text.ts";
import { pickCounts, type RunCounts, type RunTrigger } from "../usage/counts.ts";
import { type Day, dayOf, type Window } from "../usage/days.ts";
import { describeRequest, type ExportJob, planRun, type Selection, totalSliceCount } from "../usage/export-plan.ts";
import { seriesText } from "../usage/series.ts";
import { writeAnswer } from "./output.ts";
import { chooseJobs, type SelectionOptions } from "./selection.ts";

export async function runExport(app: App, options: SelectionOptions & { readonly json?: boolean }): Promise<number> {
  const fileConfig = await loadConfig(app.configPath);
  // Refuses wrong options at once. With discovery, this must wait until the lists of projects are read.
  if (fileConfig.discovery.length === 0) chooseJobs(fileConfig, options, dayOf(new Date()));
  // A missing variable must not end the run halfway.
  await requireUnrotatedKeys(app, fileConfig);
  const results: JobResult[] = [];
  await withDatabase(app, async (db) => {
    const withProjects = await discoverProjects(app, fileConfig, db);
    const config = await withFanOutFilters(withProjects, db, spanOf(options.day));
    const { jobs, selection } = chooseJobs(config, options, dayOf(new Date()));
    await using context = await openExportContext(app, config, db);
    for (const job of jobs) {
      results.push({ job, result: await exportWithProgress(context, job, { trigger: "manual", selection }) });
    }
    // Without a worker, nothing else deletes old records.
    await deleteOldRecords(db, fileConfig.runs.keepDays);
  });
  writeAnswer(app, options, results.map(exportJson), () => results.map(exportText).join(""));
  return results.every(({ result }) => result.failed + result.suspect === 0) ? 0 : 1;
}

function spanOf(days: readonly Day[] = []): Window | undefined {
  const [start, ...others] = days.toSorted();
  return start === undefined ? undefined : { start, end: others.at(-1) ?? start };
}

export async function exportWithProgress(
  context: ExportContext,
  job: ExportJob,
  { trigger, selection, label = job.name }: { trigger: RunTrigger; selection: Selection; label?: string },
): Promise<ExportResult> {
  warnOfValuesLeftOut(context.app.log, job);
  // All replicas share the database's clock.
  const today = dayOf(await databaseNow(context.db));
  const plan = planRun(job, today, selection, { toReread: await daysToReread(context, job) });
  const slices = totalSliceCount(plan.requests);
  return withProgress(label, slices, (onCounted) => executePlan(context, job, trigger, plan, onCounted));
}

type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

const BAR_COLUMNS = 24;

/** Shows a progress bar on a terminal while `work` runs. `work` reports what each request adds to the counts. Log lines overwrite the bar. */
export async function withProgress<T>(
  label: string,
  slices: number,
  work: (onCounted: (added: RunCounts) => void) => Promise<T>,
  stream: OutputStream = process.stderr,
  now = () => performance.now(),
): Promise<T> {
  const startedMs = now();
  let [done, failed] = [0, 0];
  const replaceLine = (text: string) => void (stream.isTTY && stream.write(`\r\x1b[K${text}`));
  const draw = (ending: string) => {
    const bar = "=".repeat(Math.floor((BAR_COLUMNS * done) / Math.max(slices, done, 1))).padEnd(BAR_COLUMNS, "-");
    // A line that wraps could not be replaced. A terminal that does not know its width says 0.
    replaceLine(truncate(`${label} [${bar}] ${done} of ${slices} slices${ending}`, (stream.columns || 80) - 1));
  };
  draw("");
  try {
    return await work((added) => {
      done += added.complete + added.suspect + added.undated + added.failed + added.stale;
      failed += added.failed;
      const secondsLeft = (Math.max(slices - done, 0) * (now() - startedMs)) / 1000 / Math.max(done, 1);
      draw(`${failed > 0 ? `, ${failed} failed` : ""}, ${durationText(Math.ceil(secondsLeft))} left`);
    });
  } finally {
    replaceLine("");
  }
}

export type JobResult = { readonly job: ExportJob; readonly result: ExportResult };

export function exportJson({ job, result }: JobResult) {
  const reasonJson = ({ request, reason }: RequestReason) => ({ ...describeRequest(request), reason });
  const { failures, doubts } = result;
  return { job: job.name, ...pickCounts(result), failures: failures.map(reasonJson), doubts: doubts.map(reasonJson) };
}

const REASONS_SHOWN_MAX = 5;
/** Parts of a reason that differ from request to request, even if the cause is the same. */
const REQUEST_DETAILS = /^not called again after a refusal: | \(request id [^)]*\)/g;

export function exportText({ job, result }: JobResult): string {
  const { requests, complete, suspect, failed, undated, stale, rowsChanged } = result;
  const slices = `${counted(complete, "slice")} complete, ${suspect} suspect, ${failed} failed${stale > 0 ? `, ${stale} stale` : ""}`;
  const lines = [`${job.name}: ${counted(requests, "request")}, ${slices}; ${counted(rowsChanged, "row")} changed`];
  lines.push(...reasonLines("failed", result.failures), ...reasonLines("suspect", result.doubts));
  if (undated > 0) {
    const answers = undated === 1 ? "1 answer carries" : `${undated} answers carry`;
    const next = "only bi.usage_snapshot shows them; run check for the reason";
    lines.push(`  undated: ${answers} no date, so the days they cover are not known; ${next}`);
  }
  if (stale > 0) lines.push("  stale: dropped, because the answer to a later request is stored already");
  return `${lines.join("\n")}\n`;
}

/** One line for each reason: a service that is down fails every request for the same one. */
function reasonLines(what: string, reasons: readonly RequestReason[]): readonly string[] {
  const byReason = Map.groupBy(reasons, ({ reason }) => reason.replaceAll(REQUEST_DETAILS, ""));
  const lines = [...byReason].map(([reason, [first, ...others]]) => {
    const series = first && seriesText(describeRequest(first.request));
    return `  ${what}: ${series}${others.length > 0 ? ` and ${others.length} more` : ""}: ${reason}`;
  });
  return firstOf(lines, REASONS_SHOWN_MAX, (more) => `  ${more} more reasons: see bi.coverage`);
}
