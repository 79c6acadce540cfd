// The commands of `jobs`: lists jobs and their next runs, pauses and resumes them.

import type { App } from "../app.ts";
import { type Config, type ConfiguredJob, jobsOf, loadConfig } from "../config/config.ts";
import { didYouMean } from "../config/messages.ts";
import { writtenRotations } from "../config/rotations.ts";
import { withDatabase } from "../database.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import {
  type JobId,
  type Pause,
  pauseJob,
  resumeJob,
  type StoredJob,
  storedJobFinder,
  storedJobs,
} from "../db/jobs/jobs.ts";
import { AppError } from "../errors.ts";
import { withKnownProjects } from "../jobs/discovery.ts";
import { nextOccurrence, nextOccurrences, type Schedule } from "../schedule/cron.ts";
import { counted, instantText } from "../show/format.ts";
import { writeAnswer } from "./output.ts";

type JobsOptions = { readonly json?: boolean };
export type JobsNextOptions = JobsOptions & { readonly count: number };
export type JobsPauseOptions = JobsOptions & { readonly why: string };

/** Every job, when it runs next, and whether it is paused. */
export async function runJobs(app: App, options: JobsOptions): Promise<number> {
  const config = await loadConfig(app.configPath);
  const answer = await withDatabase(app, async (db) => listJobs(db, await withKnownProjects(config, db)));
  writeAnswer(app, options, answer, (jobs) => jobs.map(renderJob).join(""));
  return 0;
}

export async function listJobs(db: Database, config: Config): Promise<readonly ListedJob[]> {
  const [stored, now] = await Promise.all([storedJobs(db), databaseNow(db)]);
  const storedOf = storedJobFinder(stored);
  const groups = Map.groupBy(jobsOf(config), (job) => `${job.kind} ${groupedName(job)}`);
  return [...groups.values()].flatMap((members) => {
    const [job] = members;
    if (!job) return [];
    const { kind, schedule, timezone } = job;
    const rows = members.map(storedOf);
    const pause = rows[0]?.pause;
    const nextRuns = pause ? [] : members.flatMap((one) => nextOccurrence(one, now)?.getTime() ?? []);
    const handled = rows.flatMap((row) => row?.scheduledThrough?.getTime() ?? []);
    return [
      {
        kind,
        job: groupedName(job),
        ...("group" in job && { projects: members.length }),
        schedule,
        timezone,
        scheduledThrough: handled.length > 0 ? new Date(Math.min(...handled)) : undefined,
        nextRun: nextRuns.length > 0 ? new Date(Math.min(...nextRuns)) : undefined,
        paused: pause,
      },
    ];
  });
}

/** A rotation of many projects is one job here, by its name in the configuration. */
function groupedName(job: ConfiguredJob): string {
  return job.kind === "rotation" ? (job.group ?? job.name) : job.name;
}

/** The next times a job runs, by this machine's clock, so that it works without a database. */
export async function runJobsNext(app: App, name: string, options: JobsNextOptions): Promise<number> {
  const job = chooseJob(await loadConfig(app.configPath), name);
  const moments = nextOccurrences(job, new Date(), options.count);
  writeAnswer(app, options, { job: name, timezone: job.timezone, next: moments }, ({ timezone, next }) =>
    next.map((moment) => `${instantText(moment)} (${localTime(moment, timezone)})\n`).join(""),
  );
  return 0;
}

export async function runJobsPause(app: App, name: string, options: JobsPauseOptions): Promise<number> {
  return changePause(app, name, options, (db, job) => pauseJob(db, job, { why: options.why, by: app.person }));
}

/** The workers catch up what was due while the job was paused. */
export async function runJobsResume(app: App, name: string, options: JobsOptions): Promise<number> {
  return changePause(app, name, options, resumeJob);
}

async function changePause(
  app: App,
  jobName: string,
  options: JobsOptions,
  change: (db: Database, job: JobId) => Promise<StoredJob>,
): Promise<number> {
  const job = chooseJob(await loadConfig(app.configPath), jobName);
  const { kind, name, pause } = await withDatabase(app, (db) => change(db, job));
  writeAnswer(app, options, { kind, job: name, paused: pause }, ({ paused }) =>
    paused ? `${kind} ${name} ${renderPause(paused)}\n` : `${kind} ${name} runs on its schedule\n`,
  );
  return 0;
}

function chooseJob(config: Config, name: string): JobId & Schedule {
  const jobs = [
    ...config.exports.map((one) => ({ ...one, kind: "export" as const })),
    ...writtenRotations(config).map((one) => ({ ...one, kind: "rotation" as const })),
  ];
  const job = jobs.find((one) => one.name === name);
  if (job) return job;
  const names = jobs.map((one) => one.name);
  throw new AppError("config", `no job ${JSON.stringify(name)} is configured${didYouMean(name, names)}`);
}

type ListedJob = {
  readonly kind: string;
  readonly job: string;
  /** How many projects a rotation is for, if it is for many: then the next run is the first of theirs. */
  readonly projects?: number;
  readonly schedule: string;
  readonly timezone: string;
  readonly scheduledThrough: Date | undefined;
  readonly nextRun: Date | undefined;
  readonly paused: Pause | undefined;
};

export function renderJob({ nextRun, paused, ...job }: ListedJob): string {
  const next = paused ? renderPause(paused) : `next run ${nextRun ? instantText(nextRun) : "never"}`;
  return `${jobTitle(job)}: ${next}\n`;
}

type JobTitle = Pick<ListedJob, "kind" | "job" | "projects" | "schedule" | "timezone">;

export function jobTitle({ kind, job, projects, schedule, timezone }: JobTitle): string {
  const many = projects === undefined ? "" : ` of ${counted(projects, "project")}`;
  return `${kind} ${job}${many} (${schedule} ${timezone})`;
}

export function renderPause({ at, why, by }: Pause): string {
  return `paused since ${instantText(at)} by ${by}: ${why}`;
}

function localTime(moment: Date, timeZone: string): string {
  return `${moment.toLocaleString("sv-SE", { timeZone })} ${timeZone}`;
}
