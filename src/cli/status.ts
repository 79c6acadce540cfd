// The command `status`: prints the health state, the gaps in coverage and the queue.

import { type App, readConfig, withDatabase } from "../app.ts";
import { readSnapshot } from "../db/connection/transaction.ts";
import { type LastRun, type UndatedSeries, undatedSeries } from "../db/health.ts";
import { rotationStatus } from "../db/keys/status.ts";
import { alertsOf } from "../health/alerts.ts";
import { adviseWindows, healthAt, type JobAdvice, renderAdvice } from "../health/read-health.ts";
import { type GapGroup, groupGaps, type HealthState, queueTotals, type WorkerHealth } from "../health/state.ts";
import { type Clocks, clockWarning, compareClocks } from "../jobs/clocks.ts";
import { deliveryWarnings } from "../jobs/verify-key.ts";
import { counted } from "../report/format.ts";
import { seriesText } from "../usage/series.ts";
import { renderPause } from "./jobs.ts";
import { formatInstant } from "./output.ts";

type Status = {
  readonly health: HealthState;
  readonly clocks: Clocks;
  /** Series without days, which are neither complete nor missing. */
  readonly undated: readonly UndatedSeries[];
  /** Exports whose window should be another. */
  readonly windows: readonly JobAdvice[];
};

/** Exit status 1 while something that was due is not complete, so that a script need not read the answer. */
export async function runStatus(app: App, options: { readonly json?: boolean }): Promise<number> {
  const config = await readConfig(app);
  const status = await withDatabase(app, async (db): Promise<Status> => {
    const { health, undated } = await readSnapshot(db, async (tx) => ({
      health: await healthAt(tx, config),
      undated: await undatedSeries(tx),
    }));
    const deliveries = await deliveryWarnings(app, db, config);
    const rotations = health.rotations.map((rotation) => ({
      ...rotation,
      warnings: [...rotation.warnings, ...(deliveries.get(rotation.rotation) ?? [])],
    }));
    // While calls are paused, the service is not asked for its time.
    const clocks = await compareClocks(app, config, db, health.callsPausedUntil === undefined);
    return { health: { ...health, rotations }, undated, clocks, windows: await adviseWindows(db, config.exports) };
  });
  const alerts = alertsOf(status.health).map(({ text }) => text);
  app.write(options.json ? `${JSON.stringify(statusJson(status, alerts))}\n` : renderStatus(status, alerts));
  return alerts.length === 0 ? 0 : 1;
}

/** Scripts read these fields. */
function statusJson({ health, undated, clocks, windows }: Status, alerts: readonly string[]) {
  const { readAt, callsPausedUntil, workers, slices, causes, queue } = health;
  return {
    readAt,
    callsPausedUntil,
    jobs: health.jobs.map(
      ({ kind, job, schedule, timezone, nextRun, lastRun, failedRun, paused, needsWorker, overdueSince }) => ({
        ...{ kind, job, schedule, timezone, nextRun, lastRun, failedRun, paused, needsWorker, overdueSince },
      }),
    ),
    workers,
    slices,
    causes,
    rotations: health.rotations.map((rotation) => ({ ...rotationStatus(rotation), warnings: rotation.warnings })),
    gaps: health.gaps.map(({ key: _, ...gap }) => gap),
    ...{ undated, queue, clocks, windows, alerts },
  };
}

const GAPS_SHOWN_MAX = 20;
const WORKERS_SHOWN_MAX = 10;

function renderStatus({ health, undated, clocks, windows }: Status, alerts: readonly string[]): string {
  const { jobs, workers, slices, gaps, rotations, queue, callsPausedUntil } = health;
  const lines = alerts.length === 0 ? ["all is well"] : ["not well:", ...alerts.map((text) => `  ${text}`)];
  const jobLines = jobs.flatMap(({ kind, job, schedule, timezone, nextRun, lastRun, paused, overdueSince: since }) => [
    `${kind} ${job} (${schedule} ${timezone})`,
    `  last run: ${lastRun ? renderRun(lastRun) : "never"}`,
    `  ${paused ? renderPause(paused) : `next run: ${nextRun ? formatInstant(nextRun) : "none"}`}`,
    ...(since ? [`  overdue since ${formatInstant(since)}: no worker has taken it up`] : []),
  ]);
  lines.push(...jobLines, ...workerLines(workers));
  if (callsPausedUntil) {
    lines.push(
      `calls to the service pause until ${formatInstant(callsPausedUntil)}, as it asked; usage-export resume-calls ends it`,
    );
  }
  const warning = clockWarning(clocks);
  if (warning) lines.push(`warning: ${warning}`);
  for (const advice of windows) lines.push(`window of ${advice.job}: ${renderAdvice(advice)}`);
  lines.push(
    `slices: ${slices.complete} complete, ${slices.suspect} suspect, ${slices.failed} failed, ${slices.missing} missing`,
  );
  const groups = groupGaps(gaps);
  for (const group of groups.slice(0, GAPS_SHOWN_MAX)) lines.push(`  ${renderGap(group)}`);
  if (groups.length > GAPS_SHOWN_MAX) lines.push(`  and ${groups.length - GAPS_SHOWN_MAX} more: see bi.coverage_gaps`);
  for (const one of undated.slice(0, GAPS_SHOWN_MAX)) lines.push(renderUndated(one));
  if (undated.length > GAPS_SHOWN_MAX) lines.push(`undated: ${undated.length - GAPS_SHOWN_MAX} more series`);
  // Nothing where nothing waits, as without workers.
  const works = queueTotals(queue).filter(({ jobs }) => jobs > 0);
  if (works.length > 0) lines.push(`queue: ${works.map(({ text }) => text).join(", ")}`);
  for (const { rotation, apiKeyId, ageDays } of rotations) {
    if (apiKeyId !== null) lines.push(`rotation ${rotation}: key ${apiKeyId}, ${ageDays} days old`);
  }
  return `${lines.join("\n")}\n`;
}

/** Stopped workers are shown only if no worker runs. */
function workerLines(workers: readonly WorkerHealth[]): readonly string[] {
  const shown = workers.filter(({ state }) => state !== "stopped");
  if (shown.length === 0) {
    const [last] = workers;
    return [last ? `workers: none runs; the last one was ${renderWorker(last)}` : "workers: none was ever seen"];
  }
  const more = shown.length - WORKERS_SHOWN_MAX;
  return [
    `workers: ${shown.filter(({ state }) => state === "live").length} live`,
    ...shown.slice(0, WORKERS_SHOWN_MAX).map((worker) => `  ${renderWorker(worker)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function renderWorker({ host, pid, version, startedAt, lastSeenAt, state }: WorkerHealth): string {
  const since = { live: "last seen", silent: "silent since", stopped: "stopped" }[state];
  return `${host} pid ${pid}, version ${version}, started ${formatInstant(startedAt)}, ${since} ${formatInstant(lastSeenAt)}`;
}

function renderRun({ status, startedAt, trigger, error, skippedSince }: LastRun): string {
  const skipped = skippedSince > 0 ? `, ${skippedSince} of its moments skipped since` : "";
  return `${status}, ${formatInstant(startedAt)}, ${trigger}${skipped}${error === null ? "" : `: ${error}`}`;
}

function renderUndated({ snapshots, takenAt, ...series }: UndatedSeries): string {
  return `undated: ${seriesText(series)}: ${counted(snapshots, "snapshot")}, the newest of ${formatInstant(takenAt)}; the answers carry no date, see bi.usage_snapshot`;
}

const SERIES_SHOWN_MAX = 3;

function renderGap({ status, series, from, to, error }: GapGroup): string {
  const days = from === to ? from : `${from} to ${to}`;
  const names = series.map(seriesText);
  const more = names.length - SERIES_SHOWN_MAX;
  const where = [...names.slice(0, SERIES_SHOWN_MAX), ...(more > 0 ? [`and ${more} more series`] : [])].join(", ");
  return `${status}: ${where}, ${days}${error === null ? "" : `: ${error}`}`;
}
