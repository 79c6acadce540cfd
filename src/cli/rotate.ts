import { type App, readConfig, withDatabase } from "../app.ts";
import type { Config } from "../config/config.ts";
import { quoteAll } from "../config/messages.ts";
import type { Database } from "../db/connection/database.ts";
import { readLedger } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import { requireStaticKeys } from "../jobs/api-keys.ts";
import { inspectFiles } from "../jobs/delivered-files.ts";
import type { RotationContext } from "../jobs/export-context.ts";
import { openRotationContext } from "../jobs/open-context.ts";
import { type RotationOptions, rotationRequest, runRotationJob } from "../jobs/run-rotation.ts";
import { planRotation } from "../keys/plan.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { RotationResult } from "../keys/rotate.ts";
import { readMasterKeys } from "../keys/seal.ts";
import { requireKnown } from "./selection.ts";

export type RotateOptions = {
  readonly job?: readonly string[];
  readonly now?: boolean;
  readonly dryRun?: boolean;
  readonly rollback?: boolean;
  readonly json?: boolean;
};

type RotationAnswer = { readonly rotation: string } & RotationResult;

export async function runRotate(app: App, options: RotateOptions): Promise<number> {
  const config = await readConfig(app);
  const jobs = chooseRotations(config, options);
  // Both are called for their errors, before the database is opened.
  await requireStaticKeys(app, config);
  readMasterKeys(app.env);
  return withDatabase(app, (db) =>
    options.dryRun ? showPlans(app, db, jobs, options) : rotateAll(app, config, db, jobs, options),
  );
}

function chooseRotations({ rotations }: Config, { job: names, now, rollback }: RotateOptions): readonly RotationJob[] {
  if (now && rollback) {
    throw new AppError("config", "--now and --rollback exclude each other: a fresh key, or the previous one");
  }
  const known = rotations.map(({ name }) => name);
  requireKnown("--job", names, known);
  const jobs = rotations.filter(({ name }) => names?.includes(name) ?? true);
  if (jobs.length === 0) throw new AppError("config", "no rotation is configured: there is nothing to rotate");
  if (rollback && jobs.length > 1) {
    throw new AppError("config", `--rollback needs --job: the rotations are ${quoteAll(known)}`);
  }
  return jobs;
}

async function rotateAll(
  app: App,
  config: Config,
  db: Database,
  jobs: readonly RotationJob[],
  { now, rollback, json }: RotateOptions,
): Promise<number> {
  await using context = await openRotationContext(app, config, db);
  const answers: RotationAnswer[] = [];
  for (const job of jobs) answers.push(await rotateOne(context, job, { now, rollback }));
  app.write(json ? `${JSON.stringify(answers)}\n` : answers.map(renderAnswer).join(""));
  return answers.every(({ status }) => status === "ok") ? 0 : 1;
}

/** A rotation that fails does not keep the others from being rotated. */
async function rotateOne(
  context: RotationContext,
  job: RotationJob,
  options: RotationOptions,
): Promise<RotationAnswer> {
  try {
    return { rotation: job.name, ...(await runRotationJob(context, job, "manual", options)) };
  } catch (error) {
    if (context.app.signal.aborted || !(error instanceof AppError) || error.code === "config") throw error;
    const errors = [errorText(error)];
    return { rotation: job.name, status: "failed", did: [], kept: [], idle: undefined, needsAttention: false, errors };
  }
}

/** `kept` are the earlier keys that were left unchanged, each with the reason. */
function renderAnswer({ rotation, did, kept, idle, errors }: RotationAnswer): string {
  const notDone = [...kept.map((text) => `kept ${text}`), ...errors.map((text) => `failed: ${text}`)];
  return renderRotation(rotation, [...did, ...notDone, idle]);
}

function renderRotation(rotation: string, lines: readonly (string | undefined)[]): string {
  return `${[rotation, ...lines.filter((line) => line !== undefined)].join("\n  ")}\n`;
}

/** Reads the ledger and the delivered files, and calls nothing. */
async function showPlans(
  app: App,
  db: Database,
  jobs: readonly RotationJob[],
  { json, ...options }: RotateOptions,
): Promise<number> {
  const plans: PlanAnswer[] = [];
  for (const job of jobs) plans.push(await planAnswer(app, db, job, options));
  app.write(json ? `${JSON.stringify(plans)}\n` : plans.map(renderPlan).join(""));
  return plans.some(({ blocked }) => blocked !== undefined) ? 1 : 0;
}

type PlanAnswer = Awaited<ReturnType<typeof planAnswer>>;

async function planAnswer(app: App, db: Database, job: RotationJob, options: RotationOptions) {
  const { ledger, now } = await readLedger(db, job);
  const inspection = await inspectFiles(app, db, job, ledger);
  const { next, idle, blocked, cleanup } = planRotation(job, ledger, now, rotationRequest(options, now), inspection);
  const steps = [...(next ? [next] : []), ...cleanup].map((step) => {
    const key = "key" in step ? step.key : undefined;
    return { step: step.kind, apiKeyId: key?.apiKeyId ?? key?.intentId, reason: step.reason };
  });
  return { rotation: job.name, steps, idle, blocked };
}

function renderPlan({ rotation, steps, idle, blocked }: PlanAnswer): string {
  const lines = steps.map(({ step, apiKeyId, reason }) => `would ${step}${apiKeyId ? ` ${apiKeyId}` : ""}: ${reason}`);
  return renderRotation(rotation, [...lines, idle, blocked]);
}
