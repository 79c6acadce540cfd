// The environment of a command: its variables, log and outputs, its database and the service.

import os from "node:os";
import path from "node:path";
import type { Logger } from "pino";
import type { Config } from "./config/config.ts";
import { DATA_FOLDER, loadConfig } from "./config/load.ts";
import { type Database, type OnConnectionLost, openEmbedded, openPostgres } from "./db/connection/database.ts";
import { isAccessDenied, isConnectionError } from "./db/connection/errors.ts";
import { explainMissingRight } from "./db/connection/installation.ts";
import { requireCurrentSchema } from "./db/connection/migrate.ts";
import { raiseSequences } from "./db/sequences.ts";
import { AppError, errorText } from "./errors.ts";
import { openLog } from "./log.ts";
import { type Environment, proxyOf, proxySecrets } from "./proxy.ts";
import { Scrubber, Secret } from "./secret.ts";
import type { Service, ServiceDeps } from "./service/service.ts";
import { escapeControlCharacters } from "./text.ts";

export type App = {
  readonly env: Environment;
  readonly configPath: string;
  readonly signal: AbortSignal;
  readonly scrubber: Scrubber;
  readonly log: Logger;
  /** The person on whose behalf the command runs, recorded for later readers. */
  readonly person: string;
  /**
   * Who writes to the key ledger, recorded with each event. It has no process id: the process will have ended when somebody reads
   * the event.
   */
  readonly actor: string;
  /** Standard output: the command's answer. */
  readonly write: (text: string) => void;
  /** Whether standard error is a terminal, so that a person reads it. */
  readonly terminal: boolean;
};

/** How long to wait for a database server that went away. A failover or a restart takes less. */
const RECONNECT_MS_MAX = 60_000;
/** How long a statement may run on after the stop signal. */
const STATEMENT_MS_AFTER_STOP = 10_000;

const URL_VARIABLES = ["DATABASE_URL", "MIGRATION_DATABASE_URL"] as const;
type UrlVariable = (typeof URL_VARIABLES)[number];

const SECRET_VARIABLES = [...URL_VARIABLES, "USAGE_EXPORT_MASTER_KEY", "USAGE_EXPORT_MASTER_KEY_PREVIOUS"];

export async function openApp(env: Environment, configPath: string, signal: AbortSignal): Promise<App> {
  requireVerifiedTls(env);
  const scrubber = new Scrubber();
  for (const name of SECRET_VARIABLES) if (env[name]) scrubber.add(new Secret(env[name]));
  for (const name of URL_VARIABLES) {
    const password = passwordOf(env[name]);
    if (password !== undefined) scrubber.add(new Secret(password));
  }
  for (const secret of proxySecrets(env)) scrubber.add(secret);
  const terminal = process.stderr.isTTY === true;
  const log = await openLog(env.LOG_LEVEL, terminal, scrubber);
  const write = (text: string) => void process.stdout.write(escapeControlCharacters(scrubber.scrub(text)));
  const user = userName(env);
  const host = os.hostname();
  const person = user === undefined ? host : `${user} on ${host}`;
  const actor = `usage-export on ${host}${user === undefined ? "" : ` (${user})`}`;
  return { env, configPath, signal, scrubber, log, person, actor, write, terminal };
}

/** Undefined if the system has no name for the current user, as in many containers. */
function userName({ SUDO_USER }: Environment): string | undefined {
  if (SUDO_USER) return SUDO_USER;
  try {
    return os.userInfo().username || undefined;
  } catch {
    return undefined;
  }
}

/** With the variable set to 0, clients that do not demand verification themselves, such as the database driver, accept any certificate. */
function requireVerifiedTls({ NODE_TLS_REJECT_UNAUTHORIZED }: Environment): void {
  if (NODE_TLS_REJECT_UNAUTHORIZED !== "0") return;
  throw new AppError(
    "config",
    "NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the checks of certificates: remove it; to trust an authority of your own, set NODE_EXTRA_CA_CERTS=FILE",
  );
}

function passwordOf(url: string | undefined): string | undefined {
  const password = URL.parse(url ?? "")?.password;
  try {
    return password && decodeURIComponent(password);
  } catch {
    // A percent sign that starts no valid escape is taken literally.
    return password;
  }
}

/** `onFile` is called with the path of each further file that the configuration is made of. */
export async function readConfig(app: App, onFile?: (file: string) => void): Promise<Config> {
  return loadConfig(app.configPath, onFile && { onFile });
}

/** Runs `work` on the database, which must have the schema of this version, and closes it. */
export async function withDatabase<T>(app: App, work: (db: Database) => Promise<T>): Promise<T> {
  return withDatabaseAt(app, "DATABASE_URL", async (db) => {
    await requireCurrentSchema(db);
    return work(db);
  });
}

/**
 * Must run before anything is written. If tables were copied without their sequences, the stored fetches have higher numbers than
 * new ones, and every new answer would count as stale.
 */
export async function raiseLaggingSequences({ log }: App, db: Database): Promise<void> {
  const sequences = await raiseSequences(db);
  if (sequences.length > 0) {
    log.warn({ sequences }, "sequences were behind what is stored, as after logical replication, and were raised");
  }
}

/**
 * For `migrate`: the database may have any version of the schema. If DATABASE_URL is the address of a pooler, MIGRATION_DATABASE_URL
 * is the address of the server itself.
 */
export async function withDatabaseToMigrate<T>(app: App, work: (db: Database) => Promise<T>): Promise<T> {
  const variable = app.env.MIGRATION_DATABASE_URL === undefined ? "DATABASE_URL" : "MIGRATION_DATABASE_URL";
  return withDatabaseAt(app, variable, work);
}

async function withDatabaseAt<T>(app: App, variable: UrlVariable, work: (db: Database) => Promise<T>): Promise<T> {
  const db = await openDatabase(app, variable);
  try {
    return await work(db);
  } catch (error) {
    throw isConnectionError(error) || isAccessDenied(error)
      ? databaseUnreachable(app, error, variable)
      : await explainMissingRight(db, error);
  } finally {
    await db.destroy();
  }
}

/**
 * Opens the database at the URL in `variable`, or the embedded one if the variable is not set. Waits for a server that was reached
 * before and went away. A statement may run on for `stoppingMs` after the app's signal.
 */
export async function openDatabase(
  app: App,
  variable: UrlVariable = "DATABASE_URL",
  stoppingMs: number = STATEMENT_MS_AFTER_STOP,
  onLost: OnConnectionLost = logLostConnections(app.log),
): Promise<Database> {
  const url = databaseUrlOf(app.env, variable);
  if (url === undefined) {
    const folder = path.resolve(DATA_FOLDER);
    logDatabase(app, `embedded in ${folder}`, `${variable} is not set`);
    return openEmbedded(folder);
  }
  const { username, host, pathname } = new URL(url);
  logDatabase(app, `${username === "" ? "" : `${username}@`}${host}${pathname}`, variable);
  const reconnect = { waitMs: RECONNECT_MS_MAX, signal: app.signal, stoppingMs };
  return openPostgres(url, onLost, reconnect);
}

/**
 * Undefined means the embedded database. A variable that is set but empty is an error: with the embedded database in place of the
 * configured one, the numbers would end up in two databases.
 */
export function databaseUrlOf(env: Environment, variable: UrlVariable = "DATABASE_URL"): string | undefined {
  const url = env[variable];
  if (url === undefined) return undefined;
  if (url.trim() === "") {
    const instead = variable === "DATABASE_URL" ? "the embedded database in ./data" : "DATABASE_URL";
    throw new AppError(
      "config",
      `${variable} is empty: expected postgres://user:password@host:port/database; remove the variable to use ${instead}`,
    );
  }
  // Checked here because the error of a URL that can't be parsed holds the URL, with its password.
  const isPostgres = /^postgres(ql)?:\/\//.test(url);
  if (!isPostgres || !URL.canParse(url)) {
    const hint = isPostgres ? "; in the password, write %23 for #, %2F for / and %3F for ?" : "";
    throw new AppError("config", `${variable}: expected postgres://user:password@host:port/database${hint}`);
  }
  return url;
}

/** Every command names its database: nothing else shows which of several databases it used. `by` is where the choice comes from. */
function logDatabase({ env, log, scrubber, terminal }: App, database: string, by: string): void {
  if (!terminal || env.LOG_LEVEL !== undefined) log.info({ database, by }, "database");
  else process.stderr.write(scrubber.scrub(`database: ${database} (${by})\n`));
}

const LOST_CONNECTION_LOG_MS = 60_000;

/** A restart of the server breaks all connections at once; the log gets one line for all of them. */
function logLostConnections(log: Logger): OnConnectionLost {
  let lastMs: number | undefined;
  return (error) => {
    const isNew = lastMs === undefined || performance.now() - lastMs > LOST_CONNECTION_LOG_MS;
    lastMs = performance.now();
    log[isNew ? "warn" : "debug"]({ reason: error.message }, "database connection lost");
  };
}

/**
 * Names the server, without user and password, and the next step. The error alone says "connect ECONNREFUSED", and is empty if the host
 * name has several addresses.
 */
export function databaseUnreachable({ env }: App, error: Error, variable: UrlVariable = "DATABASE_URL"): AppError {
  const cause = error instanceof AggregateError ? error.errors[0] : error;
  const { host, pathname } = URL.parse(env[variable] ?? "") ?? { host: "this machine", pathname: "" };
  const where = variable === "DATABASE_URL" ? "" : ` (${variable})`;
  const nextStep = isAccessDenied(error)
    ? `correct ${variable}, or what the server allows`
    : `start the server at this address, or correct ${variable}`;
  const message = `the database at ${host}${pathname}${where} can't be used: ${errorText(cause)}; ${nextStep}`;
  return new AppError("database", message, { cause });
}

/** Loads the client only here, because half the commands make no calls. On one database all calls of the process share one rate. */
export async function openServiceFor(
  app: App,
  config: Config,
  db: Database | undefined,
  deps: Pick<ServiceDeps, "onAttempt" | "waitMsMax"> = {},
): Promise<Service> {
  const { openService } = await import("./service/client.ts");
  const { sharedRate } = await import("./shared-rate.ts");
  const rate = sharedRate(db, config.service, app.log);
  const scrub = (text: string) => app.scrubber.scrub(text);
  return openService(config.service, { ...deps, rate, proxy: proxyOf(app.env), log: app.log, scrub });
}
