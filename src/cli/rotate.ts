import { type App, readConfig, withDatabase } from "../app.ts";
import type { Config } from "../config/config.ts";
import { didYouMean } from "../config/suggestions.ts";
import type { Database } from "../db/connection/database.ts";
import { readLedger } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import { requireStaticKeys } from "../jobs/api-keys.ts";
import { openRotationContext } from "../jobs/open-context.ts";
import { rotationRequest, runRotationJob } from "../jobs/run-rotation.ts";
import { inspectFiles } from "../jobs/verify-key.ts";
import { type CleanupStep, planRotation, type RotationStep } from "../keys/plan.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { RotationResult } from "../keys/rotate.ts";
import { readMasterKeys } from "../keys/seal.ts";

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
  await requireStaticKeys(app, config);
  readMasterKeys(app.env);
  return withDatabase(app, (db) =>
    options.dryRun ? showPlans(app, db, jobs, options) : rotateAll(app, config, db, jobs, options),
  );
}

function chooseRotations(config: Config, { job: names, now, rollback }: RotateOptions): readonly RotationJob[] {
  if (now && rollback)
    throw new AppError("config", "--now and --rollback exclude each other: a fresh key, or the previous one");
  const known = config.rotations.map(({ name }) => name);
  for (const name of names ?? []) {
    if (known.includes(name)) continue;
    throw new AppError("config", `--job: no rotation ${JSON.stringify(name)} is configured${didYouMean(name, known)}`);
  }
  const jobs = config.rotations.filter(({ name }) => names?.includes(name) ?? true);
  if (jobs.length === 0) throw new AppError("config", "no rotation is configured: there is nothing to rotate");
  if (rollback && jobs.length > 1) {
    throw new AppError(
      "config",
      `--rollback needs --job: there are ${known.map((name) => JSON.stringify(name)).join(", ")}`,
    );
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
  const request = { now: now === true, rollback: rollback === true };
  const answers: RotationAnswer[] = [];
  for (const job of jobs)
    answers.push(await rotateOne(app, job, () => runRotationJob(context, job, "manual", request)));
  app.write(json ? `${JSON.stringify(answers)}\n` : answers.map(renderResult).join(""));
  return answers.every(({ status }) => status === "ok") ? 0 : 1;
}

/** One rotation that fails does not keep the others from being rotated. */
async function rotateOne(app: App, job: RotationJob, run: () => Promise<RotationResult>): Promise<RotationAnswer> {
  try {
    return { rotation: job.name, ...(await run()) };
  } catch (error) {
    if (app.signal.aborted || !(error instanceof AppError) || error.code === "config") throw error;
    const errors = [errorText(error)];
    return { rotation: job.name, status: "failed", did: [], kept: [], idle: undefined, needsAttention: false, errors };
  }
}

function renderResult({ rotation, did, kept, idle, errors }: RotationAnswer): string {
  const lines = [
    rotation,
    ...did.map((text) => `  ${text}`),
    ...kept.map((text) => `  kept ${text}`),
    ...errors.map((text) => `  failed: ${text}`),
  ];
  if (idle !== undefined) lines.push(`  ${idle}`);
  return `${lines.join("\n")}\n`;
}

/** Reads the ledger and calls nothing: what a step needs to know of the service is seen when it is done. */
async function showPlans(
  app: App,
  db: Database,
  jobs: readonly RotationJob[],
  { json, ...asked }: RotateOptions,
): Promise<number> {
  const plans = [];
  for (const job of jobs) {
    const { ledger, now } = await readLedger(db, job);
    const inspection = await inspectFiles(app, db, job, ledger);
    const { next, idle, blocked, cleanup } = planRotation(job, ledger, now, rotationRequest(asked, now), inspection);
    const steps = [...(next ? [next] : []), ...cleanup].map(plannedStep);
    plans.push({ rotation: job.name, steps, idle, blocked });
  }
  app.write(json ? `${JSON.stringify(plans)}\n` : plans.map(renderPlan).join(""));
  return plans.some(({ blocked }) => blocked !== undefined) ? 1 : 0;
}

type PlannedStep = { readonly step: string; readonly apiKeyId?: string; readonly reason: string };

function plannedStep(step: RotationStep | CleanupStep): PlannedStep {
  const { kind, reason } = step;
  return { step: kind, ...("key" in step && { apiKeyId: step.key.apiKeyId ?? step.key.intentId }), reason };
}

type PlannedRotation = {
  readonly rotation: string;
  readonly steps: readonly PlannedStep[];
  readonly idle: string | undefined;
  readonly blocked: string | undefined;
};

function renderPlan({ rotation, steps, idle, blocked }: PlannedRotation): string {
  const lines = steps.map(({ step, apiKeyId, reason }) => `would ${step}${apiKeyId ? ` ${apiKeyId}` : ""}: ${reason}`);
  return `${[rotation, ...lines, ...[idle, blocked].filter((text) => text !== undefined)].join("\n  ")}\n`;
}
