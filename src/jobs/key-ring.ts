// The API keys that projects are called with: from the environment, a file, or the ledger of the rotation that renews them.

import type { App } from "../app.ts";
import { batched } from "../async.ts";
import { isProgram, runCommand } from "../command.ts";
import type { Config } from "../config/config.ts";
import { type CommandReference, type KeyReference, keyName, type StaticKeyReference } from "../config/projects.ts";
import { neededKeys, problemsByCause, readSecret, secretOf, secretProblems } from "../config/secrets.ts";
import type { Database } from "../db/connection/database.ts";
import { masterKeysUsed, recordEvent, rotationsWithKey, usableKeys } from "../db/keys/keystore.ts";
import { AppError } from "../errors.ts";
import { holdsScope, type RotationJob } from "../keys/policy.ts";
import { isDamaged, type MasterKeys, openSealedKey, readMasterKeys, requireMasterKeys } from "../keys/seal.ts";
import type { Scrubber, Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { DAY_MS } from "../usage/days.ts";
import type { Project } from "../usage/series.ts";

/** Throws `config` with everything that is wrong with keys, as far as that is known without the database. */
export async function requireStaticKeys(app: App, config: Config): Promise<void> {
  // Any rotation may have a key in the ledger already, and then its `first` key is not needed.
  const rotations = new Set(config.rotations.map(({ name }) => name));
  throwProblems([...rotationProblems(config), ...(await missingKeys(app, config, rotations))]);
}

export type KeyRing = {
  /** The name of the key that a project is called with. Undefined if the project has none. */
  readonly nameOf: (project: Project) => string | undefined;
  /**
   * Calls with the project's key. If the service refuses the key itself (401), calls once more with another key: with its
   * replacement, if the key file or the ledger has one by now; otherwise, if the key is a rotation's, with the key before it.
   */
  readonly use: <T>(project: Project, call: (key: Secret) => Promise<T>) => Promise<T>;
  /**
   * Calls with the key that creates and deletes the keys of a rotation. If that is the project's own key, every known key of the
   * project is tried, also the one that `first` configures (the key in use until the rotation has made one): otherwise a refused
   * key could not be replaced.
   */
  readonly useToRotate: <T>(
    job: Pick<RotationJob, "name" | "project">,
    call: (key: Secret) => Promise<T>,
  ) => Promise<T>;
};

type KeyRingDeps = {
  readonly app: App;
  readonly db: Database | undefined;
  /** Undefined without a database, and if no key is rotated. */
  readonly masterKeys: MasterKeys | undefined;
  readonly commands: KeyCommands;
  /** When each fallback was reported last, by its reason. */
  readonly reportedMs: Map<string, number>;
};

type KeyRingOptions = {
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
  { masterKeys: given, printedKeys }: KeyRingOptions = {},
): Promise<KeyRing> {
  throwProblems(await missingKeys(app, config, db ? await rotationsWithKey(db) : new Set()));
  const projectKeys = new Map(config.projects.map(({ id, key }) => [id, key]));
  const creators = new Map(
    config.rotations.flatMap(({ name, createWith }) => (createWith ? [[name, createWith] as const] : [])),
  );
  const isRotated = [...projectKeys.values(), ...creators.values()].some(({ kind }) => kind === "rotation");
  const masterKeys = given ?? (db && isRotated ? await openMasterKeys(app, db) : undefined);
  const commands = openKeyCommands(app, printedKeys);
  const deps: KeyRingDeps = { app, db, masterKeys, commands, reportedMs: new Map() };
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
  { app, db, reportedMs }: KeyRingDeps,
  project: Project,
  rotation: string,
  trouble: { readonly reason: string; readonly refused?: string },
  used: CandidateKey,
): Promise<void> {
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

// Keys that commands print. A key is kept in memory, and its command runs again when the service refuses the key. Nothing that a command
// prints is shown or logged: it may be the key.

export type KeyCommands = {
  /** The key that the command prints. Projects with the same command share one run of it. */
  readonly read: (reference: CommandReference) => Promise<Secret>;
  /** Called when the service refused the key: the next `read` runs the command again, though not twice in a minute. */
  readonly refused: (reference: CommandReference, key: Secret) => void;
};

/** What the commands of a process have printed, by command. A worker keeps it when it takes up another configuration. */
export type PrintedKeys = Map<string, Answer>;

type KeyCommandDeps = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly scrubber: Pick<Scrubber, "add">;
  readonly signal: AbortSignal;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
};

/** How long a command is not run again that failed, or whose key the service refuses: otherwise each call of an export would run it. */
const RERUN_MS_MIN = 60_000;
/** More commands at once would slow down this machine and the vault that they ask. */
const CONCURRENT_MAX = 4;

type Answer = {
  readonly key: Promise<Secret>;
  /** Set when the command has ended and printed a key. */
  printed?: Secret;
  /** It failed, or the service refused its key. */
  isStale: boolean;
  /** When the command was asked for, and later when it ended. */
  atMs: number;
};

export function openKeyCommands(
  { env, scrubber, signal, now = () => performance.now() }: KeyCommandDeps,
  answers: PrintedKeys = new Map(),
): KeyCommands {
  const run = batched((references: readonly CommandReference[]) => Promise.all(references.map(runKeyCommand)), {
    weightMax: 1,
    weightOf: () => 1,
    concurrency: CONCURRENT_MAX,
  });

  async function runKeyCommand(reference: CommandReference): Promise<Secret> {
    const { command, timeoutSeconds, variables } = reference;
    const given = Object.fromEntries(variables.map((name) => [name, env[name]]));
    const settings = { input: "", variables: given, timeoutSeconds, signal };
    const { failure, stdout } = await runCommand(command, settings);
    const source = `the key command ${JSON.stringify(command[0] ?? "")}`;
    // As a service that does not answer: a vault may be back in a minute.
    if (failure !== undefined) {
      const hint = "what it printed is not shown, as it may hold a key; run it by hand to see why";
      throw new AppError("unavailable", `${source} ${failure} (${hint})`);
    }
    if (stdout.trim() === "") throw new AppError("unavailable", `${source} printed nothing: expected the API key`);
    return scrubber.add(secretOf("key", stdout.trim(), `the output of ${source}`));
  }

  return {
    async read(reference) {
      const id = JSON.stringify(reference);
      const before = answers.get(id);
      if (before && !(before.isStale && now() - before.atMs >= RERUN_MS_MIN)) return before.key;
      const answer: Answer = { key: run(reference), isStale: false, atMs: now() };
      answers.set(id, answer);
      try {
        answer.printed = await answer.key;
        return answer.printed;
      } catch (error) {
        answer.isStale = true;
        // A command that was ended with the work that needed it says nothing about the next one.
        if (signal.aborted && answers.get(id) === answer) answers.delete(id);
        throw error;
      } finally {
        answer.atMs = now();
      }
    },
    refused(reference, key) {
      const answer = answers.get(JSON.stringify(reference));
      if (answer?.printed?.equals(key)) answer.isStale = true;
    },
  };
}

/** What is wrong with the programs of the commands. They are not run: with thousands of projects that would take hours. */
async function keyCommandProblems(needed: ReturnType<typeof neededKeys>): Promise<string[]> {
  const commands = needed.flatMap(({ path, reference }) =>
    reference.kind === "command" ? [{ path: [...path, "command", 0], program: reference.command[0] ?? "" }] : [],
  );
  const missing = new Set<string>();
  for (const program of new Set(commands.map((one) => one.program))) {
    if (!(await isProgram(program))) missing.add(program);
  }
  return problemsByCause(
    commands
      .filter(({ program }) => missing.has(program))
      .map(({ path, program }) => ({
        path,
        message: `the program ${JSON.stringify(program)} does not exist, or may not be run`,
      })),
  );
}
