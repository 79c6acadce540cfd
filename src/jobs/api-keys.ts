// The API keys that projects are called with: from the environment, a file, or the ledger of the rotation that renews them.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type KeyReference, keyName, type StaticKeyReference } from "../config/key-source.ts";
import { neededKeys, readSecret, secretProblems } from "../config/secrets.ts";
import type { Database } from "../db/connection/database.ts";
import { recordEvent } from "../db/keys/events.ts";
import { masterKeysUsed, rotationsWithKey, usableKeys } from "../db/keys/keystore.ts";
import { AppError } from "../errors.ts";
import { holdsScope, scopesProblem } from "../keys/policy.ts";
import { isDamaged, type MasterKeys, openSealedKey, readMasterKeys, requireMasterKeys } from "../keys/seal.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { DAY_MS } from "../usage/days.ts";
import type { Project } from "../usage/series.ts";
import type { KeyRing } from "./export-context.ts";
import { type KeyCommands, keyCommandProblems, openKeyCommands, type PrintedKeys } from "./key-commands.ts";

/** Throws `config` with everything that is wrong with keys, as far as that is known without the database. */
export async function requireStaticKeys(app: App, config: Config): Promise<void> {
  // Any rotation may have a key in the ledger already, and then its `first` key is not needed.
  const rotations = new Set(config.rotations.map(({ name }) => name));
  throwProblems([...rotationProblems(config), ...(await missingKeys(app, config, rotations))]);
}

type KeyRingDeps = {
  readonly app: App;
  readonly db: Database | undefined;
  /** Undefined without a database, and if no key is rotated. */
  readonly masterKeys: MasterKeys | undefined;
  readonly commands: KeyCommands;
  readonly onFallback: (rotation: string) => void;
  /** When each fallback was reported last, by its reason. */
  readonly reportedMs: Map<string, number>;
};

type KeyRingOptions = {
  /** Called when the service refused the key in use and an older one was used instead. */
  readonly onFallback?: ((rotation: string) => void) | undefined;
  /** Left out, they are read if a project is called with a key of the ledger. */
  readonly masterKeys?: MasterKeys | undefined;
  /** Left out, each key command runs when its key is needed first. */
  readonly printedKeys?: PrintedKeys | undefined;
};

/**
 * Throws `config` with everything that is wrong with keys, so that it is known before the first call. Without a database,
 * rotations use their `first` keys.
 */
export async function openKeyRing(
  app: App,
  config: Config,
  db: Database | undefined,
  { onFallback = () => {}, masterKeys: given, printedKeys }: KeyRingOptions = {},
): Promise<KeyRing> {
  throwProblems(await missingKeys(app, config, db ? await rotationsWithKey(db) : new Set()));
  const projectKeys = new Map(config.projects.map(({ id, key }) => [id, key]));
  const creators = new Map(
    config.rotations.flatMap(({ name, createWith }) => (createWith ? [[name, createWith] as const] : [])),
  );
  const isRotated = [...projectKeys.values(), ...creators.values()].some(({ kind }) => kind === "rotation");
  const masterKeys = given ?? (db && isRotated ? await openMasterKeys(app, db) : undefined);
  const commands = openKeyCommands(app, printedKeys);
  const groups = new Map(config.rotations.map(({ name, group }) => [name, group]));
  const countFallback = (rotation: string) => onFallback(groups.get(rotation) ?? rotation);
  const deps: KeyRingDeps = { app, db, masterKeys, commands, onFallback: countFallback, reportedMs: new Map() };
  return {
    nameOf({ id }) {
      const key = projectKeys.get(id);
      return key && keyName(key);
    },
    use: (project, call) => callWithKey(deps, project, projectKeys.get(project.id), 2, call),
    useToRotate: ({ name, project }, call) =>
      callWithKey(deps, project, creators.get(name) ?? projectKeys.get(project.id), 3, call),
  };
}

/** Calls with the newest known key. If the service refuses it, calls again with the next one; at most `keysMax` keys are tried. */
async function callWithKey<T>(
  deps: KeyRingDeps,
  project: Project,
  reference: KeyReference | undefined,
  keysMax: number,
  call: (key: Secret) => Promise<T>,
): Promise<T> {
  if (!reference) throw new AppError("config", `project "${project.name}" has no key`);
  const candidates = () => candidateKeys(deps, project, reference, keysMax);
  const [first, ...others] = await candidates();
  const tried: CandidateKey[] = [];
  for (let used = first; ; ) {
    tried.push(used);
    try {
      const answer = await call(used.key.named(keyName(reference)));
      if (reference.kind === "rotation" && used !== first) {
        const trouble = { refused: first.id, reason: `the service refused ${first.id}, the key in use` };
        await reportFallback(deps, project, reference.rotation, trouble, used);
      }
      return answer;
    } catch (error) {
      if (!(error instanceof AppError) || !isKeyRejected(error) || tried.length >= keysMax) throw error;
      used.onRefused?.();
      // Read again, because the refused key may have been replaced since the keys were read.
      const known = [...(await candidates()), ...others];
      const next = known.find(({ key }) => !tried.some((one) => one.key.equals(key)));
      if (!next) throw error;
      used = next;
    }
  }
}

type CandidateKey = { readonly id: string; readonly key: Secret; readonly onRefused?: () => void };

/** The key to use, followed by the keys to fall back to. */
async function candidateKeys(
  deps: KeyRingDeps,
  project: Project,
  reference: KeyReference,
  keysMax: number,
): Promise<[CandidateKey, ...CandidateKey[]]> {
  if (reference.kind !== "rotation") return [await readStatic(deps, reference, "the key")];
  const { opened, damage } = await storedKeys(deps, project, reference.rotation);
  // Once a rotation has made a key, its `first` key may be gone from the environment.
  const first =
    opened.length >= keysMax
      ? undefined
      : await readStatic(deps, reference.first, "the first key").catch((error) => {
          if (opened.length === 0) throw damage ?? error;
        });
  const [used, ...others] = [...opened, ...(first ? [first] : [])];
  if (!used) throw new AppError("config", `project "${project.name}" has no key`);
  if (damage) await reportFallback(deps, project, reference.rotation, { reason: damage.message }, used);
  return [used, ...others];
}

async function readStatic({ app, commands }: KeyRingDeps, of: StaticKeyReference, id: string): Promise<CandidateKey> {
  if (of.kind !== "command") return { id, key: app.scrubber.add(await readSecret("key", of, app.env)) };
  const key = await commands.read(of);
  return { id, key, onRefused: () => commands.refused(of, key) };
}

/** The two newest keys of the rotation, without those that do not open. `damage`: why the newest one does not. */
async function storedKeys({ app, db, masterKeys }: KeyRingDeps, project: Project, rotation: string) {
  const opened: CandidateKey[] = [];
  let damage: AppError | undefined;
  if (!db || !masterKeys) return { opened, damage };
  for (const sealed of (await usableKeys(db, rotation, project.id)).slice(0, 2)) {
    try {
      opened.push({ id: sealed.apiKeyId, key: await openSealedKey(sealed, masterKeys, app.scrubber) });
    } catch (error) {
      if (!isDamaged(error)) throw error;
      if (opened.length === 0) damage ??= error;
    }
  }
  return { opened, damage };
}

/** The call succeeded, but a person must know that the key in use does not work. */
async function reportFallback(
  { app, db, onFallback, reportedMs }: KeyRingDeps,
  project: Project,
  rotation: string,
  trouble: { readonly reason: string; readonly refused?: string },
  used: CandidateKey,
): Promise<void> {
  onFallback(rotation);
  const reason = `${trouble.reason}; ${used.id} was used in its place`;
  // Reported again after a day: an alert that is not renewed counts as resolved.
  const nowMs = Date.now();
  if (nowMs - (reportedMs.get(reason) ?? Number.NEGATIVE_INFINITY) < DAY_MS) return;
  reportedMs.set(reason, nowMs);
  const facts = { project: project.name, rotation, ...trouble, used: used.id };
  app.log.error(facts, "fell back to the previous key");
  if (db) await recordEvent(db, { rotation, intentId: undefined, event: "fallback", actor: app.actor, reason });
}

/** The master keys of the environment. Throws `config` if a key in the ledger is sealed with another one. */
export async function openMasterKeys(app: App, db: Database): Promise<MasterKeys> {
  const masterKeys = readMasterKeys(app.env);
  requireMasterKeys(masterKeys, await masterKeysUsed(db));
  return masterKeys;
}

async function missingKeys(app: App, config: Config, rotated: ReadonlySet<string>): Promise<string[]> {
  const needed = neededKeys(config, rotated);
  const problems = [...(await secretProblems(needed, app.env)), ...(await keyCommandProblems(needed))];
  if (problems.length === 0) return [];
  return [
    ...problems,
    "The first key of a project can't be created through the API: create it in the service's web console.",
  ];
}

function rotationProblems({ rotations, projects }: Config): string[] {
  const problems = rotations.flatMap(({ name, scopes, createWith, index }) => {
    const path = `rotations[${index}].scopes`;
    const problem = scopesProblem(scopes);
    if (problem !== undefined) return [`${path}: ${problem}`];
    const makesItsSuccessor = createWith
      ? createWith.kind === "rotation" && createWith.rotation === name
      : projects.some(({ key }) => key.kind === "rotation" && key.rotation === name);
    if (!makesItsSuccessor || holdsScope(scopes, "keys:write")) return [];
    return [
      `${path}: expected keys:write, or a role with it, because each key creates the next one unless createWith names another key; got ${scopes.join(", ")}`,
    ];
  });
  // Of a rotation of many projects it is the same for each.
  return [...new Set(problems)];
}

function throwProblems(problems: readonly string[]): void {
  if (problems.length > 0) throw new AppError("config", problems.join("\n"));
}
