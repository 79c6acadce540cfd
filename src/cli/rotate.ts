// The command `rotate`: rotates the keys that are due, or prints what would be done.

import type { App } from "../app.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { quoteAll, requireKnown } from "../config/messages.ts";
import { isPattern } from "../config/projects.ts";
import { jobNameOf, type RotationConfig } from "../config/rotations.ts";
import { requireUnrotatedKeys } from "../config/secrets.ts";
import type { Database } from "../db/connection/database.ts";
import { readLedger } from "../db/keys/ledger.ts";
import { raiseLaggingSequences } from "../db/usage/fetch-numbers.ts";
import { AppError } from "../errors.ts";
import { openServiceContext } from "../jobs/context.ts";
import { discoverProjects, withKnownProjects } from "../jobs/discovery.ts";
import { type RotationResult, rotateByHand, stepText, type Wants } from "../jobs/rotation.ts";
import { cleanupSteps, planRotation } from "../keys/rotation-plan.ts";
import { readMasterKeys } from "../keys/seal.ts";
import { withDatabase } from "../open-database.ts";
import { present } from "../text.ts";

export type RotateOptions = {
  readonly job?: readonly string[];
  readonly project?: readonly string[];
  readonly now?: boolean;
  readonly dryRun?: boolean;
  readonly rollback?: boolean;
  readonly json?: boolean;
};

/** `project` is set if the rotation is for many projects. */
type RotationAnswer = RotationResult & { readonly rotation: string; readonly project?: string };

export async function runRotate(app: App, options: RotateOptions): Promise<number> {
  const { job, now, rollback, dryRun } = options;
  const fileConfig = await loadConfig(app.configPath);
  if (now && rollback) throw new AppError("config", "--now and --rollback exclude each other: leave out one of them");
  requireKnown("--job", job, namesInFile(fileConfig));
  // Refuses a mistake before the database is opened. With discovery, the lists may still add a project that is unknown now.
  if (fileConfig.discovery.length === 0) chooseRotations(fileConfig, options);
  await requireUnrotatedKeys(app, fileConfig);
  readMasterKeys(app.env);
  return withDatabase(app, async (db) => {
    // Lists are read only if they may add a project to a rotation: not for --dry-run, which makes no call, nor for a rollback, an emergency.
    const named = fileConfig.file.rotations.filter(({ name }) => job?.includes(name) ?? true);
    const mayGrow = fileConfig.discovery.length > 0 && named.some(({ projects }) => projects?.some(isPattern));
    const readsLists = mayGrow && !dryRun && !rollback;
    const config = readsLists ? await discoverProjects(app, fileConfig, db) : await withKnownProjects(fileConfig, db);
    return rotateAll(app, config, db, chooseRotations(config, options), options);
  });
}

function namesInFile(config: Config): readonly string[] {
  return config.file.rotations.map(({ name }) => name);
}

/** Throws `config` if nothing is chosen. Each item of `project` is a name or an id. */
function chooseRotations(config: Config, { job, project: given, rollback }: RotateOptions): readonly RotationConfig[] {
  const candidates = config.rotations.filter((one) => job?.includes(jobNameOf(one)) ?? true);
  const ids = candidates.map(({ project }) => project.id);
  const names = [...new Set(candidates.map(({ project }) => project.name))];
  const givenNames = given?.filter((one) => !ids.includes(one));
  requireKnown("--project", givenNames, names, (name) => `no chosen rotation is for the project ${name}`);
  const chosen = candidates.filter(({ project: { id, name } }) => !given || given.includes(id) || given.includes(name));
  if (chosen.length === 0) {
    const isConfigured = namesInFile(config).length > 0;
    const reason = isConfigured ? "no chosen rotation has a project that is known" : "no rotation is configured";
    throw new AppError("config", `${reason}: there is nothing to rotate`);
  }
  if (rollback && new Set(chosen.map(jobNameOf)).size > 1) {
    throw new AppError("config", `--rollback needs --job: the rotations are ${quoteAll(namesInFile(config))}`);
  }
  return chosen;
}

async function rotateAll(
  app: App,
  config: Config,
  db: Database,
  rotations: readonly RotationConfig[],
  { dryRun, json, now, rollback }: RotateOptions,
): Promise<number> {
  const wants: Wants = now ? "fresh" : rollback ? "previous" : undefined;
  // After a restore, the sequence that numbers key events may be behind the stored events.
  if (!dryRun) await raiseLaggingSequences(db, app.log);
  await using context = dryRun ? undefined : await openServiceContext(app, config, db);
  const answers: RotationAnswer[] = [];
  const report = (rotation: RotationConfig, result: RotationResult) => {
    const project = rotation.jobName === undefined ? {} : { project: rotation.project.name };
    const answer = { rotation: jobNameOf(rotation), ...project, ...result };
    answers.push(answer);
    if (!json) app.write(renderAnswer(answer));
  };
  for (const [jobName, members] of Map.groupBy(rotations, jobNameOf)) {
    if (context) await rotateByHand(context, jobName, members, wants, report);
    else for (const rotation of members) report(rotation, await resultOfPlan(db, rotation, wants));
  }
  if (json) app.write(`${JSON.stringify(answers)}\n`);
  return answers.every(({ status }) => status === "ok") ? 0 : 1;
}

/** Plans from the ledger alone: the service is not called. */
async function resultOfPlan(db: Database, rotation: RotationConfig, wants: Wants): Promise<RotationResult> {
  const { ledger, now } = await readLedger(db, rotation);
  const { next, idle, blocked } = planRotation(rotation, ledger, now, wants && { wants, at: now });
  const did = present([next, ...cleanupSteps(rotation, ledger, now)]).map((step) => `would ${stepText(step)}`);
  return { status: blocked === undefined ? "ok" : "failed", did, kept: [], idle, errors: present([blocked]) };
}

function renderAnswer({ rotation, project, did, kept, idle, errors }: RotationAnswer): string {
  const title = project === undefined ? rotation : `${rotation}, project ${project}`;
  const notDone = [...kept.map((text) => `kept ${text}`), ...errors.map((text) => `failed: ${text}`)];
  return `${present([title, ...did, ...notDone, idle]).join("\n  ")}\n`;
}
