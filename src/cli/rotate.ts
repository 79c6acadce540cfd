import type { App } from "../app.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { quoteAll, requireKnown } from "../config/messages.ts";
import { isPattern } from "../config/projects.ts";
import { type RotationConfig, writtenRotations } from "../config/rotations.ts";
import { withDatabase } from "../database.ts";
import type { Database } from "../db/connection/database.ts";
import { sealedKey } from "../db/keys/keystore.ts";
import { readLedger } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import { openRotationContext, type RotationContext } from "../jobs/context.ts";
import { discoverProjects, withKnownProjects } from "../jobs/discovery.ts";
import { requireStaticKeys } from "../jobs/key-ring.ts";
import { type RotationOptions, rotationRequest, runRotationJob } from "../jobs/rotation.ts";
import { activeKey, type LedgerKey } from "../keys/ledger.ts";
import { type Inspection, planRotation } from "../keys/plan.ts";
import type { RotationResult } from "../keys/rotate.ts";
import { openSealedKey, readMasterKeys } from "../keys/seal.ts";
import { staleFiles } from "../keys/sinks.ts";

export type RotateOptions = {
  readonly job?: readonly string[];
  readonly project?: readonly string[];
  readonly now?: boolean;
  readonly dryRun?: boolean;
  readonly rollback?: boolean;
  readonly json?: boolean;
};

/** `project` is set where the rotation is for many. */
type Names = { readonly rotation: string; readonly project?: string };

type RotationAnswer = Names & RotationResult;

export async function runRotate(app: App, options: RotateOptions): Promise<number> {
  const written = await loadConfig(app.configPath);
  // These are called for their errors, before the database is opened.
  requireOptions(written, options);
  if (!findsProjects(written, options)) chooseRotations(written, options);
  await requireStaticKeys(app, written);
  readMasterKeys(app.env);
  return withDatabase(app, async (db) => {
    // The list is never read to put a key back, which is an emergency.
    const readsLists = !options.dryRun && !options.rollback && findsProjects(written, options);
    const config = readsLists ? await discoverProjects(app, written, db) : await withKnownProjects(written, db);
    const jobs = chooseRotations(config, options);
    return options.dryRun ? showPlans(app, db, jobs, options) : rotateAll(app, config, db, jobs, options);
  });
}

function namesInFile(config: Config): readonly string[] {
  return writtenRotations(config).map(({ name }) => name);
}

/** What is wrong with the options whatever projects there are. */
function requireOptions(config: Config, { job, now, rollback }: RotateOptions): void {
  if (now && rollback) {
    throw new AppError("config", "--now and --rollback exclude each other: a fresh key, or the previous one");
  }
  requireKnown("--job", job, namesInFile(config));
}

/** Whether a chosen rotation may be for projects that only the service's list names. */
function findsProjects({ discovery, writtenForMany }: Config, { job: names }: RotateOptions): boolean {
  const chosen = writtenForMany?.filter(({ name }) => names?.includes(name) ?? true) ?? [];
  return discovery !== undefined && chosen.some(({ projects }) => projects?.some(isPattern));
}

function chooseRotations(config: Config, options: RotateOptions): readonly RotationConfig[] {
  const { job: names, project: projects, rollback } = options;
  const nameOf = ({ group, name }: RotationConfig) => group ?? name;
  const named = config.rotations.filter((one) => names?.includes(nameOf(one)) ?? true);
  const jobs = chooseProjects(named, projects);
  if (jobs.length === 0) {
    const isConfigured = namesInFile(config).length > 0;
    const reason = isConfigured ? "no chosen rotation has a project that is known" : "no rotation is configured";
    throw new AppError("config", `${reason}: there is nothing to rotate`);
  }
  if (rollback && new Set(jobs.map(nameOf)).size > 1) {
    const known = [...new Set(config.rotations.map(nameOf))];
    throw new AppError("config", `--rollback needs --job: the rotations are ${quoteAll(known)}`);
  }
  return jobs;
}

/** By the projects' names or ids. */
function chooseProjects(
  rotations: readonly RotationConfig[],
  projects: readonly string[] | undefined,
): readonly RotationConfig[] {
  const known = [...new Set(rotations.map(({ project }) => project.name))];
  const ids = rotations.map(({ project }) => project.id);
  const names = projects?.filter((one) => !ids.includes(one));
  requireKnown("--project", names, known, (name) => `no chosen rotation is for the project ${name}`);
  return rotations.filter(
    ({ project }) => projects === undefined || projects.includes(project.name) || projects.includes(project.id),
  );
}

async function rotateAll(
  app: App,
  config: Config,
  db: Database,
  jobs: readonly RotationConfig[],
  { now, rollback, json }: RotateOptions,
): Promise<number> {
  await using context = await openRotationContext(app, config, db);
  const answers: RotationAnswer[] = [];
  for (const job of jobs) {
    const answer = await rotateOne(context, job, { now, rollback });
    answers.push(answer);
    // Of many keys a person sees at once what was done.
    if (!json) app.write(renderAnswer(answer));
  }
  if (json) app.write(`${JSON.stringify(answers)}\n`);
  return answers.every(({ status }) => status === "ok") ? 0 : 1;
}

/** A rotation that fails does not keep the others from being rotated. */
async function rotateOne(
  context: RotationContext,
  job: RotationConfig,
  options: RotationOptions,
): Promise<RotationAnswer> {
  try {
    return { ...namesOf(job), ...(await runRotationJob(context, job, "manual", options)) };
  } catch (error) {
    if (context.app.signal.aborted || !(error instanceof AppError)) throw error;
    // Of many projects one may have no key, and the others must not wait for it.
    if (error.code === "config" && job.group === undefined) throw error;
    const errors = [errorText(error)];
    return { ...namesOf(job), status: "failed", did: [], kept: [], idle: undefined, needsAttention: false, errors };
  }
}

/** `kept` are the earlier keys that were left unchanged, each with the reason. */
function renderAnswer({ did, kept, idle, errors, ...names }: RotationAnswer): string {
  const notDone = [...kept.map((text) => `kept ${text}`), ...errors.map((text) => `failed: ${text}`)];
  return renderRotation(names, [...did, ...notDone, idle]);
}

function namesOf({ name, group, project }: RotationConfig): Names {
  return group === undefined ? { rotation: name } : { rotation: group, project: project.name };
}

function renderRotation({ rotation, project }: Names, lines: readonly (string | undefined)[]): string {
  const title = project === undefined ? rotation : `${rotation}, project ${project}`;
  return `${[title, ...lines.filter((line) => line !== undefined)].join("\n  ")}\n`;
}

/** Reads the ledger and the delivered files, and calls nothing. */
async function showPlans(
  app: App,
  db: Database,
  jobs: readonly RotationConfig[],
  { json, ...options }: RotateOptions,
): Promise<number> {
  const plans: PlanAnswer[] = [];
  for (const job of jobs) plans.push(await planAnswer(app, db, job, options));
  app.write(json ? `${JSON.stringify(plans)}\n` : plans.map(renderPlan).join(""));
  return plans.some(({ blocked }) => blocked !== undefined) ? 1 : 0;
}

type PlanAnswer = Awaited<ReturnType<typeof planAnswer>>;

async function planAnswer(app: App, db: Database, job: RotationConfig, options: RotationOptions) {
  const { ledger, now } = await readLedger(db, job);
  const inspection = await inspectFiles(app, db, job, activeKey(ledger));
  const { next, idle, blocked, cleanup } = planRotation(job, ledger, now, rotationRequest(options, now), inspection);
  const steps = [...(next ? [next] : []), ...cleanup].map((step) => {
    const key = "key" in step ? step.key : undefined;
    return { step: step.kind, apiKeyId: key?.apiKeyId ?? key?.intentId, reason: step.reason };
  });
  return { ...namesOf(job), steps, idle, blocked };
}

async function inspectFiles(
  { env, scrubber }: App,
  db: Database,
  { deliver }: RotationConfig,
  active: LedgerKey | undefined,
): Promise<Inspection | undefined> {
  const sealed = active && (await sealedKey(db, active.intentId));
  if (!sealed) return undefined;
  const secret = await openSealedKey(sealed, readMasterKeys(env), scrubber);
  return {
    intentId: active.intentId,
    refusal: undefined,
    stale: await staleFiles(deliver, active.deliveredTo, secret),
  };
}

function renderPlan({ steps, idle, blocked, ...names }: PlanAnswer): string {
  const lines = steps.map(({ step, apiKeyId, reason }) => `would ${step}${apiKeyId ? ` ${apiKeyId}` : ""}: ${reason}`);
  return renderRotation(names, [...lines, idle, blocked]);
}
