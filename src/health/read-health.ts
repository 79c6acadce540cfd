// Reads the health state of jobs, workers, coverage, rotations and queue in one snapshot, and advice on the windows of exports.

import { type Config, jobsOf } from "../config/config.ts";
import { listOf } from "../config/discovered.ts";
import { writtenRotations } from "../config/rotations.ts";
import { readAnomalies } from "../db/anomalies.ts";
import { watchedBudgets } from "../db/budgets.ts";
import { storedPauses } from "../db/calling-processes.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { runOn } from "../db/connection/statements.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot, type Tx, tryWithin } from "../db/connection/transaction.ts";
import {
  type JobRecord,
  type JobToJudge,
  jobRecords,
  type LastOutcome,
  type LastRun,
  lastOutcomes,
  lastRuns,
  readCompleteness,
  readGaps,
  type SeriesHealth,
} from "../db/health.ts";
import { type JobId, type StoredJob, storedJobFinder, storedJobs } from "../db/jobs/jobs.ts";
import { queueDepths } from "../db/jobs/queue.ts";
import { storedWorkers } from "../db/jobs/workers.ts";
import { type RotationRow, rotationRows } from "../db/keys/status.ts";
import { type StoredList, storedLists } from "../db/projects.ts";
import { failureCauses } from "../db/usage/failures.ts";
import { errorText } from "../errors.ts";
import { restatementCurves } from "../facts/restatements.ts";
import { nextRunAt, overdueSince, runAfter, type ScheduledJob, waitingSince } from "../schedule/due.ts";
import { counted } from "../show/format.ts";
import { projectsText } from "../text.ts";
import { type ExportJob, jobSeries, NO_SERIES, seriesOf } from "../usage/plan.ts";
import type { Grouping, Series } from "../usage/series.ts";
import { adviseWindow, KNOWN_SHARE_ENOUGH, type WindowAdvice } from "../usage/window-advice.ts";
import { LABELS_MAX } from "./gauges.ts";
import { groupFinder, ledgerGroups, mergeJobs, mergeRotations } from "./rotation-groups.ts";
import { countSlices, type FailedRun, type HealthFigures, type HealthState, type JobHealth } from "./state.ts";

type HealthOptions = {
  /** Of which projects the gaps are listed; of all if left out. Everything else is of all. */
  readonly isShown?: ((project: string) => boolean) | undefined;
  /** The limit of each statement. */
  readonly statementSecondsMax?: number;
};

export async function readHealth(
  db: Database,
  config: Config,
  { isShown, statementSecondsMax }: HealthOptions = {},
): Promise<HealthState> {
  return readSnapshot(db, (tx) => healthAt(db, tx, config, isShown), statementSecondsMax);
}

/** For /metrics, which show numbers only. Each statement has the short limit of BRIEF_SNAPSHOT_SECONDS. */
export async function readHealthFigures(db: Database, config: Config): Promise<HealthFigures> {
  return readSnapshot(db, (tx) => figuresAt(db, tx, config), BRIEF_SNAPSHOT_SECONDS);
}

async function healthAt(
  db: Database,
  tx: Tx,
  config: Config,
  isShown: (project: string) => boolean = () => true,
): Promise<HealthState> {
  const figures = await figuresAt(db, tx, config);
  const { readAt, series, slices, workers } = figures;
  const hasLiveWorker = workers.some(({ recent }) => recent);
  const causes = slices.failed > 0 ? await failureCauses(tx, readAt) : [];
  const shown = series.filter(({ project }) => isShown(project));
  return {
    ...figures,
    ...(await readGaps(tx, shown)),
    // If no worker runs, nothing is retried.
    causes: causes.map((cause) => (hasLiveWorker ? cause : { ...cause, nextTry: undefined })),
  };
}

/** `tx` is a snapshot of `db`. */
async function figuresAt(db: Database, tx: Tx, config: Config): Promise<HealthFigures> {
  const now = await databaseNow(tx);
  const { series, seriesCount, projects } = await readCompleteness(tx, LABELS_MAX);
  const workers = await storedWorkers(tx);
  const configured = new Map(writtenRotations(config).map((one) => [one.name, one]));
  const rows = await rotationRows(tx);
  const rotations = mergeRotations(rows, ledgerGroups(config, rows));
  return {
    readAt: now,
    callPauses: await storedPauses(tx),
    jobs: await readJobs(tx, config, series, now),
    workers: workers.map(({ workerId: _, stoppedAt, ...worker }) => ({
      ...worker,
      state: stoppedAt ? "stopped" : worker.recent ? "live" : "silent",
    })),
    series,
    seriesCount,
    projects,
    slices: countSlices(projects),
    rotations: rotations.map((row) => {
      const settings = configured.get(row.rotation);
      const warnings = settings ? leftOutWarnings(config, row) : [];
      return { ...row, ...(settings ? {} : NO_FAILURES), configured: settings, warnings };
    }),
    queue: await queueDepths(tx),
    lists: await readLists(tx, config),
    ...(await readUsageFigures(db, tx, config)),
  };
}

/** A list whose entry was removed from the configuration is of no interest any more. */
async function readLists(tx: Tx, { discovery }: Config): Promise<readonly StoredList[]> {
  if (!discovery) return [];
  const configured = new Set(discovery.entries.map(listOf));
  return (await storedLists(tx)).filter(({ list }) => configured.has(list));
}

/**
 * Budgets and anomalies, which take longer to read the more usage is stored. If reading them fails, as by the time limit of a statement,
 * everything that is said of the program itself is still known.
 */
async function readUsageFigures(
  db: Database,
  tx: Tx,
  config: Config,
): Promise<Pick<HealthFigures, "budgets" | "anomalies" | "notRead">> {
  const budgets = await tryWithin(tx, () => watchedBudgets(db, tx));
  const anomalies = await tryWithin(tx, async () =>
    config.anomalies.sensitivity === "off" ? [] : await readAnomalies(tx),
  );
  return {
    budgets: "value" in budgets ? budgets.value : [],
    anomalies: "value" in anomalies ? anomalies.value : [],
    notRead: [
      ...("error" in budgets ? [{ kind: "budget" as const, error: errorText(budgets.error) }] : []),
      ...("error" in anomalies ? [{ kind: "anomaly" as const, error: errorText(anomalies.error) }] : []),
    ],
  };
}

/** Nobody can end the failures of a rotation that is not configured any more. */
const NO_FAILURES = { failedAttempts: 0, lastError: null, fallback: null, fallbackAt: null };

/** Projects whose keys a rotation of many does not renew: their names or their files do not allow it. */
function leftOutWarnings({ rotations, leftOut = [] }: Config, { rotation }: RotationRow): readonly string[] {
  const own = leftOut.filter(({ group }) => group === rotation);
  const [first] = own;
  if (!first) return [];
  const names = own.map(({ project }) => project.name);
  const others = rotations.filter(({ group }) => group === rotation).length;
  return [`leaves out ${projectsText(names, others + own.length)}: ${first.message}`];
}

type ConfiguredJob = JobToJudge & ScheduledJob & Pick<JobHealth, "series"> & { readonly group?: string };

/** Every configured job, the exports first. */
async function readJobs(
  tx: Tx,
  config: Config,
  series: readonly SeriesHealth[],
  now: Date,
): Promise<readonly JobHealth[]> {
  const failedSeries = series.flatMap(({ isActive, key, failed }) => (isActive && failed > 0 ? [key] : []));
  const jobs = jobsOf(config).map((job): ConfiguredJob => {
    const own = job.kind === "export" ? jobSeries(job) : NO_SERIES;
    return { ...job, series: own, hasNoFailedSlice: !failedSeries.some(own.has) };
  });
  const [stored, runs] = [await storedJobs(tx), await lastRuns(tx, jobs)];
  const [outcomes, records] = [await lastOutcomes(tx, jobs), await jobRecords(tx, jobs)];
  const byJob = <One extends JobId>(all: readonly One[]) => new Map(all.map((one) => [`${one.kind} ${one.name}`, one]));
  const [storedOf, outcomeOf, recordOf] = [storedJobFinder(stored), byJob(outcomes), byJob(records)];
  const lastRunOf = new Map(runs.map((run) => [`${run.kind} ${run.job}`, run]));
  const all = jobs.map((job) => {
    const name = `${job.kind} ${job.name}`;
    return jobHealth(job, now, {
      stored: storedOf(job),
      lastRun: lastRunOf.get(name),
      outcome: outcomeOf.get(name),
      record: recordOf.get(name),
    });
  });
  return mergeJobs(all, groupFinder(config.rotations));
}

type JobRows = {
  readonly stored: StoredJob | undefined;
  readonly lastRun: LastRun | undefined;
  readonly outcome: LastOutcome | undefined;
  readonly record: JobRecord | undefined;
};

function jobHealth(job: ConfiguredJob, now: Date, { stored, lastRun, outcome, record }: JobRows): JobHealth {
  const { kind, name, schedule, timezone, series } = job;
  const isPaused = stored?.pause !== undefined;
  const overdue = overdueSince(job, stored, now);
  const isAboutToBegin = waitingSince(job, stored, now) !== undefined && !overdue;
  return {
    ...{ kind, job: name, schedule, timezone, series, lastRun, outcome },
    // Workers do not run a paused job until it is resumed.
    nextRun: isPaused ? undefined : nextRunAt(job, now),
    firstUnplanned: stored?.scheduledThrough && !isPaused ? runAfter(job, stored.scheduledThrough) : undefined,
    paused: stored?.pause,
    needsWorker: stored !== undefined && !isPaused,
    // A run that waits for the end of the previous run is not overdue.
    overdueSince: lastRun?.status === "running" ? undefined : overdue,
    isInProgress: isAboutToBegin || record?.isRunning === true,
    failedRun: failedRunOf(job, lastRun, outcome),
    lastSuccess: record?.lastSuccess ?? null,
    failures: record?.failures ?? 0,
  };
}

/** An interrupted backfill is ignored: a person chose its days and can run it again. */
function failedRunOf(
  { hasNoFailedSlice }: ConfiguredJob,
  lastRun: LastRun | undefined,
  outcome: LastOutcome | undefined,
): FailedRun | undefined {
  if (lastRun?.status === "interrupted" && lastRun.trigger !== "backfill") {
    const { trigger, startedAt, error } = lastRun;
    return { status: "interrupted", trigger, startedAt, error, overCompleteDays: hasNoFailedSlice };
  }
  if (outcome?.status !== "failed") return undefined;
  const { trigger, startedAt, error, suspect } = outcome;
  // If suspect slices are the only problem of a run, the alert about these slices already reports it.
  const isReported = suspect > 0 && error === null;
  return { status: "failed", trigger, startedAt, error, overCompleteDays: hasNoFailedSlice && !isReported };
}

// Compares each export's window with how late the service has changed its numbers.

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
