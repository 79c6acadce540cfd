import { type App, readConfig, withDatabase } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type RotationStatus, rotationStatuses } from "../db/key-status.ts";
import { type CoverageCounts, coverageCounts, coverageGaps, type Gap, type LastRun, lastRuns } from "../db/status.ts";
import { nextAlarm } from "../schedule/next-alarm.ts";
import { rotationWarnings } from "./keys.ts";

type JobStatus = {
  readonly kind: string;
  readonly job: string;
  readonly schedule: string;
  readonly timezone: string;
  readonly nextRun: Date | undefined;
  readonly lastRun: LastRun | undefined;
};

type Status = {
  readonly jobs: readonly JobStatus[];
  readonly slices: CoverageCounts;
  readonly gaps: readonly Gap[];
  readonly rotations: readonly RotationStatus[];
};

/** Exit status 1 while something that was due is not complete, so that a script need not read the answer. */
export async function runStatus(app: App, options: { readonly json?: boolean }): Promise<number> {
  const config = await readConfig(app);
  const status = await withDatabase(app, async (db): Promise<Status> => {
    const [runs, slices, gaps, rotations] = await Promise.all([
      lastRuns(db),
      coverageCounts(db),
      coverageGaps(db),
      rotationStatuses(db),
    ]);
    return { jobs: jobsOf(config, runs), slices, gaps, rotations };
  });
  app.write(options.json ? `${JSON.stringify(status)}\n` : render(status));
  const { suspect, failed, missing } = status.slices;
  const alerts = status.rotations.flatMap(rotationWarnings);
  return suspect + failed + missing + alerts.length === 0 ? 0 : 1;
}

function jobsOf(config: Config, runs: readonly LastRun[]): JobStatus[] {
  const jobs = [
    ...config.exports.map((job) => ({ ...job, kind: "export" })),
    ...config.rotations.map((job) => ({ ...job, kind: "rotation" })),
  ];
  return jobs.map(({ kind, name, schedule, timezone }) => ({
    kind,
    job: name,
    schedule,
    timezone,
    nextRun: nextAlarm(schedule, timezone),
    lastRun: runs.find((run) => run.kind === kind && run.job === name),
  }));
}

const GAPS_SHOWN_MAX = 20;

function render({ jobs, slices, gaps, rotations }: Status): string {
  const lines = jobs.flatMap(({ kind, job, schedule, timezone, nextRun, lastRun }) => [
    `${kind} ${job} (${schedule} ${timezone})`,
    `  last run: ${lastRun ? renderRun(lastRun) : "never"}`,
    `  next run: ${nextRun ? minute(nextRun) : "none"}`,
  ]);
  lines.push(
    `slices: ${slices.complete} complete, ${slices.suspect} suspect, ${slices.failed} failed, ${slices.missing} missing`,
  );
  for (const gap of gaps.slice(0, GAPS_SHOWN_MAX)) lines.push(`  ${renderGap(gap)}`);
  if (gaps.length > GAPS_SHOWN_MAX) lines.push(`  and ${gaps.length - GAPS_SHOWN_MAX} more: see bi.coverage_gaps`);
  for (const rotation of rotations) {
    const { apiKeyId, ageDays } = rotation;
    if (apiKeyId !== null) lines.push(`rotation ${rotation.rotation}: key ${apiKeyId}, ${ageDays} days old`);
    for (const warning of rotationWarnings(rotation)) lines.push(`rotation ${rotation.rotation}: ${warning}`);
  }
  return `${lines.join("\n")}\n`;
}

function renderRun({ status, startedAt, trigger, error }: LastRun): string {
  return `${status}, ${minute(startedAt)}, ${trigger}${error === null ? "" : `: ${error}`}`;
}

function renderGap({ project, grouping, filter, status, from, to, error }: Gap): string {
  const days = from === to ? from : `${from} to ${to}`;
  return `${status}: ${project} / ${grouping} / ${filter}, ${days}${error === null ? "" : `: ${error}`}`;
}

function minute(instant: Date): string {
  return `${instant.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
