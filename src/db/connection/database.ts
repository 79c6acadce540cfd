// Opens a database: Postgres through a pool that reconnects, or the embedded one.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PGlite, QueryOptions, Results, Transaction } from "@electric-sql/pglite";
import { Kysely, PGliteDialect, PostgresDialect, type PostgresPool, sql } from "kysely";
import type { Client as PgClient } from "pg";
import { AppError } from "../../errors.ts";
import type { Tables } from "../schema.ts";
import { isConnectionError } from "./errors.ts";
import { poolWithTimeouts, settingsStatement, statementTimeoutMs } from "./timeouts.ts";

export type Database = Kysely<Tables>;

/** The connections of one process. Those of all replicas together must stay below the server's max_connections. */
const CONNECTIONS_MAX = 4;
const CONNECT_MS_MAX = 10_000;
/** An idle connection is probed after this time, so that a lost server is noticed within half a minute. */
const KEEP_ALIVE_MS = 10_000;

const OID_DATE = 1082;
const OID_INT8 = 20;

/**
 * Connects when first used, and calls `onLost` for each connection that breaks. With `reconnect`, waits for a server that was reached
 * before. Works through a pooler in transaction mode: there is no session state, and poolers know the start-up parameters.
 */
export function openPostgres(url: string, onLost?: (error: Error) => void, reconnect?: ReconnectOptions): Database {
  const open = async () => {
    const pool = await openPool(url, onLost);
    if (!reconnect) return poolWithTimeouts(pool, statementTimeoutMs);
    const { signal, stoppingMs } = reconnect;
    const giveUp = new AbortController();
    signal.addEventListener("abort", () => setTimeout(() => giveUp.abort(), stoppingMs).unref(), { once: true });
    return poolWithTimeouts(pool, statementTimeoutMs, giveUp.signal, reconnecting(pool, reconnect));
  };
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: open }) });
}

async function openPool(url: string, onLost: (error: Error) => void = () => {}): Promise<PostgresPool> {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({
    Client: clientWithSettings(pg.Client),
    connectionString: url,
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: "usage-export",
    types: {
      // pg would turn a date into local midnight, which is the day before in UTC east of Greenwich.
      getTypeParser: ((oid: number) =>
        oid === OID_DATE || oid === OID_INT8 ? String : pg.types.getTypeParser(oid)) as typeof pg.types.getTypeParser,
    },
  });
  // Without both handlers a connection that breaks would end the process. The pool only repeats what the client has reported.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", onLost));
  return pool;
}

/**
 * Sets DateStyle and standard_conforming_strings, because a role or a database may have other defaults: the driver misreads other date
 * styles, and the program's literals may hold backslashes. These are among the few parameters that poolers keep for each client.
 */
function clientWithSettings(Client: typeof PgClient): typeof PgClient {
  // The driver's types lack this method, which returns the start-up parameters.
  const startupOf: () => object = Reflect.get(Client.prototype, "getStartupConf");
  return class extends Client {
    getStartupConf(): object {
      return { ...startupOf.call(this), DateStyle: "ISO", standard_conforming_strings: "on" };
    }
  };
}

const SQLITE_BUSY = 5;

/**
 * Locks a folder for this process, and returns the function that releases the lock. Node has no file locks, but its SQLite locks a file
 * with fcntl (LockFileEx on Windows). Such a lock ends with its process, and works across containers that share the folder. The file is
 * never deleted: a process that has opened the deleted file could hold a lock that nobody else sees.
 */
export async function lockFolder(folder: string): Promise<() => void> {
  const file = path.join(folder, "lock");
  // Names the process that holds the lock, for the error message of other processes.
  const holderFile = `${file}.holder`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(file, "", { flag: "a", mode: 0o600 });
    const { DatabaseSync } = await import("node:sqlite");
    const lock = new DatabaseSync(file, { timeout: 0 });
    // The journal is kept in memory, because SQLite would otherwise create a journal file beside the lock file.
    lock.exec("pragma journal_mode = memory; begin exclusive");
    const [, , name] = process.argv;
    const command = name === undefined ? "" : ` (usage-export ${name})`;
    await writeFile(holderFile, `process ${process.pid}${command}`, { mode: 0o600 });
    return () => lock.close();
  } catch (cause) {
    const isBusy = cause instanceof Error && "errcode" in cause && cause.errcode === SQLITE_BUSY;
    const holder = await readFile(holderFile, "utf8").catch(() => "another process");
    const problem = isBusy
      ? `the embedded database in ${folder} is in use by ${holder}; it serves one process at a time: wait for that one, stop it`
      : `the embedded database can't be kept in ${folder}: start in a folder on a local disk that can be written`;
    throw new AppError("database", `${problem}, or set DATABASE_URL to a Postgres server`, { cause });
  }
}

/** Locks the folder, because rows would be lost silently if two processes used it. */
export async function openEmbedded(folder: string): Promise<Database> {
  const unlock = await lockFolder(folder);
  try {
    const { PGlite } = await import("@electric-sql/pglite");
    const pglite = await PGlite.create({
      dataDir: `${folder}/pg`,
      parsers: { [OID_DATE]: String, [OID_INT8]: String },
    });
    // The statements of a transaction go through an object of their own, which must also accept several statements in a text.
    const { transaction } = acceptSeveralStatements(pglite);
    pglite.transaction = (work) => {
      const settings = settingsStatement();
      return transaction.call(pglite, async (tx) => {
        await tx.exec(settings);
        return work(acceptSeveralStatements(tx));
      }) as ReturnType<typeof work>;
    };
    const close = pglite.close.bind(pglite);
    pglite.close = async () => {
      await close();
      unlock();
    };
    const db = new Kysely<Tables>({ dialect: new PGliteDialect({ pglite }) });
    // Kysely closes only a database that was used, and closing must always release the lock.
    await db.connection().execute(async () => {});
    return db;
  } catch (cause) {
    unlock();
    throw new AppError("database", `the embedded database in ${folder} could not be opened`, { cause });
  }
}

/** Makes `target.query` accept several statements in a text without parameters, as pg does: the queue and the views send such texts. */
function acceptSeveralStatements<T extends Pick<PGlite | Transaction, "query" | "exec">>(target: T): T {
  const { query } = target;
  target.query = async <Row>(text: string, parameters?: unknown[], options?: QueryOptions): Promise<Results<Row>> => {
    if (parameters?.length) return query.call(target, text, parameters, options) as Promise<Results<Row>>;
    const results = await target.exec(text, options);
    // Only the caller knows the row type of its statement.
    return { fields: [], ...results.at(-1), rows: results.flatMap(({ rows }) => rows as Row[]) };
  };
  return target;
}

/** The time by the database's clock, which all replicas share. */
export async function databaseNow(db: Database): Promise<Date> {
  const now = sql<Date>`pg_catalog.clock_timestamp()`.as("now");
  return (await db.selectNoFrom(now).executeTakeFirstOrThrow()).now;
}

/** The wait for the server ends after `waitMs` or with `signal`. Statements may still run for `stoppingMs` after the signal. */
type ReconnectOptions = { readonly waitMs: number; readonly signal: AbortSignal; readonly stoppingMs: number };

const RECONNECT_PAUSE_MS = 500;

/** Waits for a server that went away, so that a failover fails no slice. The first connection may fail at once: the URL may be wrong. */
function reconnecting(pool: PostgresPool, { waitMs, signal }: ReconnectOptions): PostgresPool["connect"] {
  let wasReached = false;
  return async () => {
    const untilMs = performance.now() + waitMs;
    for (;;) {
      try {
        const client = await pool.connect();
        wasReached = true;
        return client;
      } catch (error) {
        if (!wasReached || !isConnectionError(error) || signal.aborted || performance.now() > untilMs) throw error;
        await sleep(RECONNECT_PAUSE_MS, undefined, { signal }).catch(() => {});
      }
    }
  };
}
