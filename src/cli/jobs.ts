// The commands `jobs` and `resume-calls`: lists jobs and their next runs, pauses and resumes them, and ends a pause of all calls.

import { type App, originOf, readConfig, withDatabase } from "../app.ts";
import { type Config, type ConfiguredJob, jobsOf } from "../config/config.ts";
import { didYouMean } from "../config/suggestions.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { type JobId, type Pause, pauseJob, resumeJob, type StoredJob, storedJobs } from "../db/jobs/jobs.ts";
import { resumeCalls } from "../db/rate-limit.ts";
import { AppError } from "../errors.ts";
import { nextOccurrences } from "../schedule/cron.ts";
import { jitterMs, nextRunAt } from "../schedule/due.ts";
import { formatInstant } from "./output.ts";

type JobsOptions = { readonly json?: boolean; readonly kind?: JobId["kind"] };
export type JobsNextOptions = JobsOptions & { readonly count: number };
export type JobsPauseOptions = JobsOptions & { readonly why: string };

/** Every job, when it runs next, and whether somebody paused it. */
export async function runJobs(app: App, { json }: JobsOptions): Promise<number> {
  const config = await readConfig(app);
  const answer = await withDatabase(app, (db) => listJobs(db, config));
  if (json) app.write(`${JSON.stringify(answer)}\n`);
  else app.write(answer.map(renderJob).join(""));
  return 0;
}

export async function listJobs(db: Database, config: Config): Promise<readonly ListedJob[]> {
  const [stored, now] = await Promise.all([storedJobs(db), databaseNow(db)]);
  return jobsOf(config).map((job) => {
    const { kind, name, schedule, timezone } = job;
    const { pause, scheduledThrough } = findStoredJob(stored, job) ?? {};
    const nextRun = pause ? undefined : nextRunAt(job, now);
    return { kind, job: name, schedule, timezone, scheduledThrough, nextRun, paused: pause };
  });
}

/** The next times a job runs, by this machine's clock: its database need not be there. */
export async function runJobsNext(app: App, name: string, options: JobsNextOptions): Promise<number> {
  const job = chooseJob(await readConfig(app), name, options.kind);
  const moments = nextOccurrences(job, new Date(), options.count).map(
    (moment) => new Date(moment.getTime() + jitterMs(job.name, moment, job.jitterSeconds)),
  );
  if (options.json) app.write(`${JSON.stringify({ job: name, timezone: job.timezone, next: moments })}\n`);
  else app.write(moments.map((moment) => `${formatInstant(moment)} (${localTime(moment, job.timezone)})\n`).join(""));
  return 0;
}

export async function runJobsPause(app: App, name: string, options: JobsPauseOptions): Promise<number> {
  const job = chooseJob(await readConfig(app), name, options.kind);
  const paused = await withDatabase(app, (db) => pauseJob(db, job, { why: options.why, by: app.person }));
  return writePauseState(app, paused, options);
}

/** What was due in the meantime is caught up by the workers. */
export async function runJobsResume(app: App, name: string, options: JobsOptions): Promise<number> {
  const job = chooseJob(await readConfig(app), name, options.kind);
  return writePauseState(app, await withDatabase(app, (db) => resumeJob(db, job)), options);
}

function chooseJob(config: Config, name: string, kind: JobId["kind"] | undefined): ConfiguredJob {
  const jobs = jobsOf(config).filter((job) => kind === undefined || job.kind === kind);
  const [job, other] = jobs.filter((one) => one.name === name);
  if (!job) {
    const names = jobs.map((one) => one.name);
    throw new AppError("config", `no job ${JSON.stringify(name)} is configured${didYouMean(name, names)}`);
  }
  if (other)
    throw new AppError("config", `there is an export and a rotation ${JSON.stringify(name)}: say which with --kind`);
  return job;
}

function findStoredJob(stored: readonly StoredJob[], { kind, name }: JobId): StoredJob | undefined {
  return stored.find((one) => one.kind === kind && one.name === name);
}

function writePauseState(app: App, { kind, name, pause }: StoredJob, { json }: JobsOptions): number {
  if (json) app.write(`${JSON.stringify({ kind, job: name, paused: pause })}\n`);
  else app.write(pause ? `${kind} ${name} ${renderPause(pause)}\n` : `${kind} ${name} runs on its schedule\n`);
  return 0;
}

type ListedJob = {
  readonly kind: string;
  readonly job: string;
  readonly schedule: string;
  readonly timezone: string;
  readonly scheduledThrough: Date | undefined;
  readonly nextRun: Date | undefined;
  readonly paused: Pause | undefined;
};

export function renderJob({ kind, job, schedule, timezone, nextRun, paused }: ListedJob): string {
  const next = paused ? renderPause(paused) : `next run ${nextRun ? formatInstant(nextRun) : "never"}`;
  return `${kind} ${job} (${schedule} ${timezone}): ${next}\n`;
}

export function renderPause({ at, why, by }: Pause): string {
  return `paused since ${formatInstant(at)} by ${by}: ${why}`;
}

function localTime(moment: Date, timeZone: string): string {
  return `${moment.toLocaleString("sv-SE", { timeZone })} ${timeZone}`;
}

/** Ends the pause that the service asked for. The request may have come from a gateway that is repaired by now. */
export async function runResumeCalls(app: App, { json }: { readonly json?: boolean }): Promise<number> {
  const service = originOf(await readConfig(app));
  const until = await withDatabase(app, (db) => resumeCalls(db, service));
  if (json) app.write(`${JSON.stringify({ service, pausedUntil: until ?? null })}\n`);
  else if (until) app.write(`calls to ${service} go on; they were paused until ${formatInstant(until)}\n`);
  else app.write(`calls to ${service} were not paused\n`);
  return 0;
}
