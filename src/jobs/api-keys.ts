// The API keys that projects are called with: from the environment, a file, or the ledger of the rotation that renews them.

import type { App } from "../app.ts";
import type { Config, KeyReference, SecretReference } from "../config/config.ts";
import { neededKeys, readSecret, secretProblems } from "../config/secrets.ts";
import type { Database } from "../db/connection/database.ts";
import { recordEvent } from "../db/keys/events.ts";
import { masterKeysUsed, rotationsWithKey, usableKeys } from "../db/keys/keystore.ts";
import { AppError } from "../errors.ts";
import { holdsScope, scopesFault } from "../keys/policy.ts";
import { type MasterKeys, openSealedKey, readMasterKeys, requireMasterKeys } from "../keys/seal.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { DAY_MS } from "../usage/days.ts";
import type { Project } from "../usage/series.ts";
import type { KeyRing } from "./export-context.ts";

/** Throws `config` with all that is wrong with keys as far as it shows without the database. */
export async function requireStaticKeys(app: App, config: Config): Promise<void> {
  const mayBeRotated = new Set(config.rotations.map(({ name }) => name));
  throwProblems([...rotationProblems(config), ...(await missingKeys(app, config, mayBeRotated))]);
}

/**
 * Throws `config` with all that is wrong with keys, so that it is known before the first call. Without a database there
 * are no rotated keys, and the first ones are used.
 */
export async function openKeyRing(
  app: App,
  config: Config,
  db: Database | undefined,
  onFallback: (rotation: string) => void = () => {},
): Promise<KeyRing> {
  throwProblems(await missingKeys(app, config, db ? await rotationsWithKey(db) : new Set()));
  const creators = new Map(
    config.rotations.flatMap(({ name, createWith }) => (createWith ? [[name, createWith] as const] : [])),
  );
  const all = [...config.projects.map(({ key }) => key), ...creators.values()];
  const isRotated = all.some(({ kind }) => kind === "rotation");
  const keystore = db && isRotated ? { db, masterKeys: await openMasterKeys(app, db) } : undefined;
  const references = new Map(config.projects.map(({ id, key }) => [id, key]));
  const alertedMs = new Map<string, number>();
  return {
    use: (project, call) => {
      const reference = references.get(project.id);
      if (!reference) throw new AppError("config", `project "${project.name}" has no key`);
      return callWith({ project, reference, keysMax: 2 }, call);
    },
    useToRotate: (job, call) => {
      const reference = creators.get(job.name) ?? references.get(job.project.id);
      if (!reference) throw new AppError("config", `project "${job.project.name}" has no key`);
      return callWith({ project: job.project, reference, keysMax: 3 }, call);
    },
  };

  async function callWith<T>(calling: KeyCall, call: (key: Secret) => Promise<T>): Promise<T> {
    const { project, reference, keysMax } = calling;
    const [first, ...others] = await candidates(calling);
    if (!first) throw new AppError("config", `project "${project.name}" has no key`);
    const tried: CandidateKey[] = [];
    for (let used = first; ; ) {
      tried.push(used);
      try {
        const answer = await call(used.key);
        if (reference.kind === "rotation" && tried.length > 1) await alert(project, reference.rotation, first, used);
        return answer;
      } catch (error) {
        if (!(error instanceof AppError) || !isKeyRejected(error) || tried.length >= keysMax) throw error;
        // Read again, because the refused key may have been replaced since the keys were read.
        const known = [...(await candidates(calling)), ...others];
        const next = known.find(({ key }) => !tried.some((one) => one.key.equals(key)));
        if (!next) throw error;
        used = next;
      }
    }
  }

  /** The key to use, followed by the keys to fall back to. */
  async function candidates({ project, reference, keysMax }: KeyCall): Promise<CandidateKey[]> {
    if (reference.kind !== "rotation") return [{ id: "the key", key: await readStatic(reference) }];
    const kept: CandidateKey[] = [];
    const sealedKeys = keystore ? await usableKeys(keystore.db, reference.rotation, project.id) : [];
    for (const sealedKey of sealedKeys.slice(0, 2)) {
      const key = keystore && (await openSealedKey(sealedKey, keystore.masterKeys, app.scrubber));
      if (key) kept.push({ id: sealedKey.apiKeyId, key });
    }
    if (kept.length >= keysMax) return kept;
    // Once there is a rotated key the first one may be gone from the environment.
    const first =
      kept.length === 0 ? await readStatic(reference.first) : await readStatic(reference.first).catch(() => undefined);
    return first ? [...kept, { id: "the first key", key: first }] : kept;
  }

  async function readStatic(reference: SecretReference): Promise<Secret> {
    return app.scrubber.add(await readSecret("key", reference, app.env));
  }

  /** Everything went well, and nothing is: the key in use does not work. */
  async function alert(project: Project, rotation: string, refused: CandidateKey, used: CandidateKey): Promise<void> {
    onFallback(rotation);
    const reason = `the service refused ${refused.id}, the key in use; ${used.id} was used in its place`;
    // Said again after a day: an alert that is not renewed is over.
    const nowMs = Date.now();
    if (nowMs - (alertedMs.get(reason) ?? Number.NEGATIVE_INFINITY) < DAY_MS) return;
    alertedMs.set(reason, nowMs);
    app.log.error(
      { project: project.name, rotation, refused: refused.id, used: used.id },
      "fell back to the previous key",
    );
    if (db) await recordEvent(db, { rotation, intentId: undefined, event: "fallback", actor: app.actor, reason });
  }
}

type KeyCall = {
  readonly project: Project;
  readonly reference: KeyReference;
  /** How many keys are tried at most. */
  readonly keysMax: number;
};

type CandidateKey = { readonly id: string; readonly key: Secret };

/** The master keys of the environment. Throws `config` where one is missing that something is sealed with. */
export async function openMasterKeys(app: App, db: Database): Promise<MasterKeys> {
  const masterKeys = readMasterKeys(app.env);
  requireMasterKeys(masterKeys, await masterKeysUsed(db));
  return masterKeys;
}

async function missingKeys(app: App, config: Config, rotated: ReadonlySet<string>): Promise<string[]> {
  const problems = await secretProblems(neededKeys(config, rotated), app.env);
  if (problems.length === 0) return [];
  return [...problems, "The first key of a project can't be made by a call: make it in the service's web console."];
}

function rotationProblems({ rotations, projects }: Config): string[] {
  return rotations.flatMap(({ name, scopes, createWith }, index) => {
    const place = `rotations[${index}].scopes`;
    const fault = scopesFault(scopes);
    if (fault !== undefined) return [`${place}: ${fault}`];
    const makesItsSuccessor = createWith
      ? createWith.kind === "rotation" && createWith.rotation === name
      : projects.some(({ key }) => key.kind === "rotation" && key.rotation === name);
    if (!makesItsSuccessor || holdsScope(scopes, "keys:write")) return [];
    return [
      `${place}: expected keys:write, or a role with it: the next key is made with this one, unless createWith names another; got ${scopes.join(", ")}`,
    ];
  });
}

function throwProblems(problems: readonly string[]): void {
  if (problems.length > 0) throw new AppError("config", problems.join("\n"));
}
