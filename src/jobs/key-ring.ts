// The API keys for the calls about each project: from the environment, a file, a command, or the ledger of the rotation that renews them.

import type { App } from "../app.ts";
import { batched, memoizeAsync } from "../async.ts";
import { runCommand } from "../command.ts";
import type { Config } from "../config/config.ts";
import { type CommandReference, type KeyReference, keyName, type StaticKeyReference } from "../config/projects.ts";
import type { RotationConfig } from "../config/rotations.ts";
import { neededKeys, readSecret, requireReadable, secretOf } from "../config/secrets.ts";
import type { Database } from "../db/connection/database.ts";
import { recordEvent } from "../db/keys/ledger.ts";
import { openMasterKeys, rotationsWithActiveKey, usableKeys } from "../db/keys/sealed-keys.ts";
import { AppError } from "../errors.ts";
import { isDamaged, type MasterKeys, openSealedKey } from "../keys/seal.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { DAY_MS } from "../usage/days.ts";
import type { Project } from "../usage/series.ts";

export type KeyRing = Awaited<ReturnType<typeof openKeyRing>>;

type KeyRingDeps = {
  readonly app: App;
  readonly db: Database | undefined;
  /** Undefined without a database, and if no key is rotated. */
  readonly masterKeys: MasterKeys | undefined;
  readonly staticKeys: ReturnType<typeof openStaticKeys>;
  /** Reports each reason once a day, because an alert that is not renewed counts as resolved. */
  readonly reportDaily: (reason: string, report: () => Promise<void>) => Promise<void>;
};

/** Throws `config` with everything that is wrong with keys. Without a database, a rotation's key is its `first` key in the configuration. */
export async function openKeyRing(app: App, config: Config, db: Database | undefined, now: () => number = Date.now) {
  const { projects, rotations } = config;
  await requireReadable(neededKeys(config, db ? await rotationsWithActiveKey(db) : new Set()), app.env);
  const projectKeys = new Map(projects.map(({ id, key }) => [id, key]));
  const masterKeys = db && rotations.length > 0 ? await openMasterKeys(app, db) : undefined;
  const staticKeys = openStaticKeys(app);
  const reportDaily = memoizeAsync<void>(() => DAY_MS, now);
  const deps: KeyRingDeps = { app, db, masterKeys, staticKeys, reportDaily };
  return {
    /** If the service refuses the key itself (401), calls again with its replacement, the key before it, or the `first` key. */
    use: <T>(project: Project, call: (key: Secret) => Promise<T>): Promise<T> =>
      callWithKey(deps, project, projectKeys.get(project.id), call),
    /** The same, with the key that creates and deletes the keys of a rotation. */
    useCreatorKey: <T>({ project, createWith }: RotationConfig, call: (key: Secret) => Promise<T>): Promise<T> =>
      callWithKey(deps, project, createWith ?? projectKeys.get(project.id), call),
  };
}

/** The key in use, the key before it, and the `first` key. */
const KEYS_TRIED_MAX = 3;

type RefusedKey = { readonly key: Secret; readonly error: AppError };

async function callWithKey<T>(
  deps: KeyRingDeps,
  project: Project,
  reference: KeyReference | undefined,
  call: (key: Secret) => Promise<T>,
): Promise<T> {
  if (!reference) throw new AppError("config", `project "${project.name}" has no key`);
  const refused: RefusedKey[] = [];
  for (;;) {
    // The ledger is read again for each call, because a refused key may have been replaced since.
    const { key, id, trouble } = await findKey(deps, project, reference, refused);
    try {
      const answer = await call(key.named(keyName(reference)));
      if (trouble !== undefined && "rotation" in reference) {
        const reason = `${trouble}; ${id} was used in its place`;
        await deps.reportDaily(reason, () => reportFallback(deps, project, reference.rotation, reason));
      }
      return answer;
    } catch (error) {
      if (!(error instanceof AppError) || !isKeyRejected(error)) throw error;
      refused.push({ key, error });
      deps.staticKeys.reportRefusal(key);
      if (refused.length >= KEYS_TRIED_MAX) throw error;
    }
  }
}

/** Finds the newest key that was not refused yet, or throws the last refusal. `trouble` is why the key in use was passed over. */
async function findKey(
  { app, db, masterKeys, staticKeys }: KeyRingDeps,
  project: Project,
  reference: KeyReference,
  refused: readonly RefusedKey[],
): Promise<{ readonly key: Secret; readonly id: string; readonly trouble: string | undefined }> {
  const wasRefused = (key: Secret) => refused.some((one) => one.key.equals(key));
  const isRotated = "rotation" in reference;
  let trouble: string | undefined;
  let damage: AppError | undefined;
  if (isRotated && db && masterKeys) {
    const stored = await usableKeys(db, reference.rotation, project.id);
    for (const sealed of stored.slice(0, KEYS_TRIED_MAX - 1)) {
      const id = sealed.apiKeyId;
      const key = await openSealedKey(sealed, masterKeys, app.scrubber).catch((error: unknown) => {
        if (!isDamaged(error)) throw error;
        damage ??= error;
        return undefined;
      });
      if (key && !wasRefused(key)) return { key, id, trouble };
      trouble ??= key ? `the service refused ${id}, the key in use` : damage?.message;
    }
  }
  // The `first` key may be gone from the environment, as it is not needed once the rotation has made a key.
  const key = await staticKeys.read(isRotated ? reference.first : reference).catch((error: unknown) => {
    throw refused.at(-1)?.error ?? damage ?? error;
  });
  if (wasRefused(key)) throw refused.at(-1)?.error;
  return { key, id: isRotated ? "the first key" : "the key", trouble };
}

async function reportFallback({ app, db }: KeyRingDeps, project: Project, rotation: string, reason: string) {
  app.log.error({ project: project.name, rotation, reason }, "the key in use does not work: another one was used");
  if (db) await recordEvent(db, { rotation, intentId: undefined, event: "fallback", actor: app.actor, reason });
}

// Keys in variables, in files and from commands. A printed key is kept in memory, and its command runs again when the service refuses the key.
// Nothing that a command prints is shown or logged: it may be the key.

/** The least time between two runs of a command that failed, or whose key is refused. Otherwise every call would run it again. */
const RERUN_MS_MIN = 60_000;
/** How many commands run at once: more could overload the vault that they read from. */
const CONCURRENT_MAX = 4;

type KeyCommandRun = {
  readonly key: Promise<Secret>;
  printed?: Secret;
  /** The command failed, or the service refused its key. */
  isStale: boolean;
  /** When the run was requested or, once it is over, when it ended. */
  atMs: number;
};

/** `now` is in milliseconds and never goes back. */
export function openStaticKeys(
  { env, scrubber, signal }: Pick<App, "env" | "scrubber" | "signal">,
  now = () => performance.now(),
) {
  const runs = new Map<string, KeyCommandRun>();
  // Each batch is one command: `batched` only limits how many run at once.
  const runAll = (references: readonly CommandReference[]) => Promise.all(references.map(runKeyCommand));
  const runWhenFree = batched(runAll, { weightMax: 1, concurrency: CONCURRENT_MAX });

  async function runKeyCommand({ command, timeoutSeconds, variables }: CommandReference): Promise<Secret> {
    const given = Object.fromEntries(variables.map((name) => [name, env[name]]));
    const { failure, stdout } = await runCommand(command, { stdin: "", variables: given, timeoutSeconds, signal });
    const source = `the key command ${JSON.stringify(command[0] ?? "")}`;
    // The worker tries a job again after "unavailable": a vault may be back in a minute.
    if (failure !== undefined) {
      const hint = "what it printed is not shown, as it may hold a key; run it by hand to see why";
      throw new AppError("unavailable", `${source} ${failure} (${hint})`);
    }
    if (stdout.trim() === "") throw new AppError("unavailable", `${source} printed nothing: expected the API key`);
    return secretOf("key", stdout.trim(), `the output of ${source}`);
  }

  /** Projects with the same command share one run of it. */
  async function readPrinted(reference: CommandReference): Promise<Secret> {
    const id = JSON.stringify(reference);
    const before = runs.get(id);
    const isRerunDue = before?.isStale && now() - before.atMs >= RERUN_MS_MIN;
    if (before && !isRerunDue) return before.key;
    const begun: KeyCommandRun = { key: runWhenFree(reference), isStale: false, atMs: now() };
    runs.set(id, begun);
    try {
      begun.printed = await begun.key;
      return begun.printed;
    } catch (error) {
      begun.isStale = true;
      throw error;
    } finally {
      begun.atMs = now();
    }
  }

  return {
    async read(reference: StaticKeyReference): Promise<Secret> {
      const isCommand = "command" in reference;
      return scrubber.add(await (isCommand ? readPrinted(reference) : readSecret("key", reference, env)));
    },
    /** Call it when the service refused the key: if a command printed it, a later `read` runs the command again. */
    reportRefusal(key: Secret): void {
      for (const one of runs.values()) if (one.printed?.equals(key)) one.isStale = true;
    },
  };
}
