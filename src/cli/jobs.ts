// The commands of `jobs`: lists jobs and their next runs, pauses and resumes them.

import type { App } from "../app.ts";
import { type Config, jobsOf, loadConfig } from "../config/config.ts";
import { didYouMean } from "../config/messages.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { type JobId, type Pause, pauseJob, resumeJob, storedJobs } from "../db/jobs/jobs.ts";
import { AppError } from "../errors.ts";
import type { JobHealth } from "../facts/jobs.ts";
import { withDatabase } from "../open-database.ts";
import { nextOccurrence, nextOccurrences, type Schedule } from "../schedule/schedule.ts";
import { counted, instantText } from "../show/format.ts";
import { writeAnswer } from "./output.ts";

type JobsOptions = { readonly json?: boolean };

export async function runJobs(app: App, options: JobsOptions): Promise<number> {
  const config = await loadConfig(app.configPath);
  const answer = await withDatabase(app, (db) => listJobs(db, config));
  writeAnswer(app, options, answer, (jobs) => jobs.map(renderJob).join(""));
  return 0;
}

type ListedJob = Pick<JobHealth, "kind" | "job" | "schedule" | "timezone" | "nextRun" | "paused">;

export async function listJobs(db: Database, config: Config): Promise<readonly ListedJob[]> {
  const jobs = jobsOf(config);
  const [stored, now] = await Promise.all([storedJobs(db, jobs), databaseNow(db)]);
  return jobs.map((job, i) => {
    const { kind, name, schedule, timezone } = job;
    const paused = stored[i]?.pause;
    return { kind, job: name, schedule, timezone, nextRun: paused ? undefined : nextOccurrence(job, now), paused };
  });
}

/** Takes the time from this machine, so that no database is needed. */
export async function runJobsNext(app: App, name: string, options: JobsOptions & { count: number }): Promise<number> {
  const job = await chooseJob(app, name);
  const { timezone } = job;
  const next = nextOccurrences(job, new Date(), options.count);
  // Sweden writes 2026-03-01 02:15:00.
  const localTime = (at: Date) => at.toLocaleString("sv-SE", { timeZone: timezone });
  const lines = next.map((at) => `${instantText(at)} (${localTime(at)} ${timezone})\n`);
  writeAnswer(app, options, { job: name, timezone, next }, () => lines.join(""));
  return 0;
}

export async function runJobsPause(app: App, name: string, options: JobsOptions & { why: string }): Promise<number> {
  return changePause(app, name, options, (db, job) => pauseJob(db, job, { why: options.why, by: app.actor }));
}

/** The workers then catch up on what was due while the job was paused. */
export async function runJobsResume(app: App, name: string, options: JobsOptions): Promise<number> {
  return changePause(app, name, options, resumeJob);
}

async function changePause(app: App, jobName: string, options: JobsOptions, change: typeof resumeJob): Promise<number> {
  const job = await chooseJob(app, jobName);
  const { kind, name, pause } = await withDatabase(app, (db) => change(db, job));
  writeAnswer(app, options, { kind, job: name, paused: pause }, ({ paused }) =>
    paused ? `${kind} ${name} ${renderPause(paused)}\n` : `${kind} ${name} runs on its schedule\n`,
  );
  return 0;
}

async function chooseJob({ configPath }: App, name: string): Promise<JobId & Schedule> {
  const jobs = jobsOf(await loadConfig(configPath));
  const job = jobs.find((one) => one.name === name);
  if (job) return job;
  const names = jobs.map((one) => one.name);
  throw new AppError("config", `no job ${JSON.stringify(name)} is configured${didYouMean(name, names)}`);
}

export function renderJob({ nextRun, paused, ...job }: ListedJob): string {
  const next = paused ? renderPause(paused) : `next run ${nextRun ? instantText(nextRun) : "never"}`;
  return `${jobTitle(job)}: ${next}\n`;
}

type TitledJob = Pick<JobHealth, "kind" | "job" | "projects" | "schedule" | "timezone">;

export function jobTitle({ kind, job, projects, schedule, timezone }: TitledJob): string {
  const many = projects === undefined ? "" : ` of ${counted(projects, "project")}`;
  return `${kind} ${job}${many} (${schedule} ${timezone})`;
}

export function renderPause({ at, why, by }: Pause): string {
  return `paused since ${instantText(at)} by ${by}: ${why}`;
}
