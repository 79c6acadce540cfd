import { type App, readConfig, withDatabase } from "../app.ts";
import { type QueueDepth, queueDepths } from "../db/queue-depth.ts";
import { coverageGaps, type Gap, type LastRun } from "../db/status.ts";
import { adviseWindows, type JobAdvice, renderAdvice } from "../jobs/advise-windows.ts";
import { isWell, readStanding, rotationWarnings, type Standing } from "../jobs/standing.ts";
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
    const [{ jobs, slices, rotations }, gaps, queue, windows] = await Promise.all([
      readStanding(db, config),
      coverageGaps(db),
      queueDepths(db),
      adviseWindows(db, config.exports),
    ]);
    return { jobs, slices, gaps, rotations, queue, windows };
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
  const works = renderQueue(queue);
  if (works !== "") lines.push(`queue: ${works}`);
  for (const rotation of rotations) {
    const { apiKeyId, ageDays } = rotation;
    if (apiKeyId !== null) lines.push(`rotation ${rotation.rotation}: key ${apiKeyId}, ${ageDays} days old`);
    for (const warning of rotationWarnings(rotation)) lines.push(`rotation ${rotation.rotation}: ${warning}`);
  }
  return `${lines.join("\n")}\n`;
}

const STATES = { waiting: "waiting", retrying: "to be tried again", active: "in hand", dead: "given up" } as const;

/** Nothing where nothing waits, as without workers. */
function renderQueue(queue: readonly QueueDepth[]): string {
  const counts = Object.entries(STATES).map(([state, words]) => {
    const works = queue.filter((one) => one.state === state && one.queue !== "usage_request_dead");
    return { words, jobs: works.reduce((sum, { jobs }) => sum + jobs, 0) };
  });
  return counts.flatMap(({ words, jobs }) => (jobs > 0 ? `${jobs} ${words}` : [])).join(", ");
}

function renderRun({ status, startedAt, trigger, error }: LastRun): string {
  return `${status}, ${instant(startedAt)}, ${trigger}${error === null ? "" : `: ${error}`}`;
}

function renderGap({ project, grouping, filter, status, from, to, error }: Gap): string {
  const days = from === to ? from : `${from} to ${to}`;
  return `${status}: ${project} / ${grouping} / ${filter}, ${days}${error === null ? "" : `: ${error}`}`;
}
