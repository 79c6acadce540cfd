// Opens the database that the environment names, for a command or a worker.

import path from "node:path";
import type { App } from "./app.ts";
import { type Database, openEmbedded, openPostgres } from "./db/connection/database.ts";
import { explainMissingRight, isAccessFailure, isConnectionError } from "./db/connection/errors.ts";
import { requireCurrentSchema } from "./db/connection/migrate.ts";
import { AppError, errorText } from "./errors.ts";
import type { Environment } from "./proxy.ts";

/** How long to wait for a database server that has gone away. A failover or a restart takes less. */
const RECONNECT_MS_MAX = 60_000;
/** How long the database may be used after the stop signal. */
const STOPPING_MS = 10_000;

/** Throws if the database does not have the schema of this version, unless `anyVersion`. */
export async function withDatabase<T>(app: App, work: (db: Database) => Promise<T>, { anyVersion = false } = {}) {
  const db = await openDatabase(app);
  try {
    if (!anyVersion) await requireCurrentSchema(db);
    return await work(db);
  } catch (error) {
    throw isConnectionError(error) || isAccessFailure(error)
      ? unusableDatabaseError(app, error)
      : await explainMissingRight(db, error);
  } finally {
    await db.destroy();
  }
}

/** The database at DATABASE_URL, or the embedded one if the variable is not set. */
export async function openDatabase(app: App, stoppingMs: number = STOPPING_MS): Promise<Database> {
  const url = databaseUrlOf(app.env);
  if (url === undefined) {
    const folder = path.resolve("data");
    logDatabase(app, `embedded in ${folder}`, "DATABASE_URL is not set");
    return openEmbedded(folder);
  }
  const { username, host, pathname } = new URL(url);
  logDatabase(app, `${username === "" ? "" : `${username}@`}${host}${pathname}`, "DATABASE_URL");
  const logLost = (error: Error) => app.log.warn({ reason: error.message }, "database connection lost");
  return openPostgres(url, logLost, { waitMs: RECONNECT_MS_MAX, signal: app.signal, stoppingMs });
}

/** Undefined means the embedded database. An empty variable is an error: numbers would silently go to another database. */
export function databaseUrlOf({ DATABASE_URL: url }: Environment): string | undefined {
  if (url === undefined) return undefined;
  // A wrong URL is refused here, because the driver's error would quote it with its password.
  const isPostgres = /^postgres(ql)?:\/\//.test(url);
  if (isPostgres && URL.canParse(url)) return url;
  const isEmpty = url.trim() === "";
  const escapingHint = isPostgres ? "; in the password, write %23 for #, %2F for / and %3F for ?" : "";
  const nextStep = isEmpty ? "; remove the variable to use the embedded database in ./data" : escapingHint;
  const expected = "expected postgres://user:password@host:port/database";
  throw new AppError("config", `DATABASE_URL${isEmpty ? " is empty" : ""}: ${expected}${nextStep}`);
}

/** Reports which database a command uses, as a user may have several. `by` is what chose it. */
function logDatabase({ env, log, scrubber, hasTerminal }: App, database: string, by: string): void {
  if (!hasTerminal || env.LOG_LEVEL !== undefined) log.info({ database, by }, "database");
  else process.stderr.write(scrubber.scrub(`database: ${database} (${by})\n`));
}

/** Adds the address and the next step. The driver's error says only "connect ECONNREFUSED", or nothing if the host has two addresses. */
export function unusableDatabaseError({ env }: App, error: Error): AppError {
  const cause = error instanceof AggregateError ? error.errors[0] : error;
  const { host, pathname } = URL.parse(env.DATABASE_URL ?? "") ?? { host: "this machine", pathname: "" };
  const nextStep = isAccessFailure(error)
    ? "correct DATABASE_URL, or what the server allows"
    : "start the server at this address, or correct DATABASE_URL";
  const message = `the database at ${host}${pathname} can't be used: ${errorText(cause)}; ${nextStep}`;
  return new AppError("database", message, { cause });
}
