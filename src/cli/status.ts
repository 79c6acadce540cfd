import { type App, readConfig, withDatabase } from "../app.ts";
import { type QueueDepth, queueDepths } from "../db/queue-depth.ts";
import { readSnapshot } from "../db/read-snapshot.ts";
import { coverageGaps, type Gap, type LastRun } from "../db/status.ts";
import { adviseWindows, type JobAdvice, renderAdvice } from "../jobs/advise-windows.ts";
import { isWell, rotationWarnings, type Standing, standingAt } from "../jobs/standing.ts";
import { queueTotals } from "../monitor/queue-totals.ts";
import { instant } from "./instant.ts";
import { renderPause } from "./jobs.ts";

type Status = Standing & {
  readonly gaps: readonly Gap[];
  readonly queue: readonly QueueDepth[];
  /** Exports whose window should be another. */
  readonly windows: readonly JobAdvice[];
};

/** Exit status 1 while something that was due is not complete, so that a script need not read the answer. */
export async function runStatus(app: App, options: { readonly json?: boolean }): Promise<number> {
  const config = await readConfig(app);
  const status = await withDatabase(app, async (db): Promise<Status> => {
    // Of one moment, so that the gaps are those that are counted.
    const now = await readSnapshot(db, async (tx) => {
      const { jobs, slices, rotations } = await standingAt(tx, config);
      return { jobs, slices, gaps: await coverageGaps(tx), rotations, queue: await queueDepths(tx) };
    });
    return { ...now, windows: await adviseWindows(db, config.exports) };
  });
  app.write(options.json ? `${JSON.stringify(status)}\n` : render(status));
  return isWell(status) ? 0 : 1;
}

const GAPS_SHOWN_MAX = 20;

function render({ jobs, slices, gaps, rotations, queue, windows }: Status): string {
  const lines = jobs.flatMap(({ kind, job, schedule, timezone, nextRun, lastRun, paused, overdueSince: since }) => [
    `${kind} ${job} (${schedule} ${timezone})`,
    `  last run: ${lastRun ? renderRun(lastRun) : "never"}`,
    `  next run: ${nextRun ? instant(nextRun) : "none"}`,
    ...(paused ? [`  ${renderPause(paused)}`] : []),
    ...(since ? [`  overdue since ${instant(since)}: no worker has taken it up`] : []),
  ]);
  for (const advice of windows) lines.push(`window of ${advice.job}: ${renderAdvice(advice)}`);
  lines.push(
    `slices: ${slices.complete} complete, ${slices.suspect} suspect, ${slices.failed} failed, ${slices.missing} missing`,
  );
  for (const gap of gaps.slice(0, GAPS_SHOWN_MAX)) lines.push(`  ${renderGap(gap)}`);
  if (gaps.length > GAPS_SHOWN_MAX) lines.push(`  and ${gaps.length - GAPS_SHOWN_MAX} more: see bi.coverage_gaps`);
  // Nothing where nothing waits, as without workers.
  const works = queueTotals(queue).filter(({ jobs }) => jobs > 0);
  if (works.length > 0) lines.push(`queue: ${works.map(({ text }) => text).join(", ")}`);
  for (const rotation of rotations) {
    const { apiKeyId, ageDays } = rotation;
    if (apiKeyId !== null) lines.push(`rotation ${rotation.rotation}: key ${apiKeyId}, ${ageDays} days old`);
    for (const warning of rotationWarnings(rotation)) lines.push(`rotation ${rotation.rotation}: ${warning}`);
  }
  return `${lines.join("\n")}\n`;
}

function renderRun({ status, startedAt, trigger, error }: LastRun): string {
  return `${status}, ${instant(startedAt)}, ${trigger}${error === null ? "" : `: ${error}`}`;
}

function renderGap({ project, grouping, filter, status, from, to, error }: Gap): string {
  const days = from === to ? from : `${from} to ${to}`;
  return `${status}: ${project} / ${grouping} / ${filter}, ${days}${error === null ? "" : `: ${error}`}`;
}
