// Opens a database: Postgres through a pool that reconnects, or the embedded one. The only file that imports pg and PGlite.

import { setTimeout as sleep } from "node:timers/promises";
import type { PGlite, QueryOptions, Results, Transaction } from "@electric-sql/pglite";
import {
  Kysely,
  PGliteAdapter,
  PGliteDialect,
  PostgresAdapter,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  sql,
} from "kysely";
import type { Client as PgClient } from "pg";
import { AppError } from "../../errors.ts";
import type { Tables } from "../schema.ts";
import { isConnectionError } from "./errors.ts";
import { lockFolder } from "./lock-file.ts";
import { poolWithTimeouts, statementTimeoutMs } from "./timeouts.ts";

export type Database = Kysely<Tables>;

/** Called for every connection that breaks; after a restart of the server, once for each. */
export type OnConnectionLost = (error: Error) => void;

/** One run writes with at most this many connections: replicas × this must stay below the server's max_connections. */
const CONNECTIONS_MAX = 4;
const CONNECT_MS_MAX = 10_000;
/** How long nothing is heard before the other end is asked whether it is there: so a server that is gone is known of in half a minute. */
const KEEP_ALIVE_MS = 10_000;

const OID_DATE = 1082;
const OID_INT8 = 20;

const keepText = (value: string): string => value;

/**
 * Kysely's migrator takes a session lock, which stays behind on a pooler's connection. Migrations run inside one
 * transaction with a lock of its own instead (migrate.ts), so the adapters take none.
 */
class UnlockedPostgresAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

class UnlockedPostgresDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new UnlockedPostgresAdapter();
  }
}

class UnlockedPGliteDialect extends PGliteDialect {
  override createAdapter(): PGliteAdapter {
    return new (class extends PGliteAdapter {
      override async acquireMigrationLock(): Promise<void> {}
      override async releaseMigrationLock(): Promise<void> {}
    })();
  }
}

/**
 * Connects when first used, and waits for a server that goes away later where there is patience. No statement is waited for
 * without end: see statement-limit.ts. Uses nothing that a pooler in transaction mode refuses: no start-up parameters, no session state.
 */
export function openPostgres(url: string, onLost: OnConnectionLost = () => {}, patience?: ReconnectOptions): Database {
  const open = async () => {
    const limits = { statementMs: statementTimeoutMs, stoppingMs: patience?.stoppingMs, stop: patience?.signal };
    const pool = poolWithTimeouts(await openPool(url, onLost), limits);
    return patience ? reconnectingPool(pool, patience) : pool;
  };
  return new Kysely<Tables>({ dialect: new UnlockedPostgresDialect({ pool: open }) });
}

async function openPool(url: string, onLost: OnConnectionLost): Promise<PostgresPool> {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({
    Client: isoClient(pg.Client),
    connectionString: url,
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: "usage-export",
    types: {
      // pg would turn a date into local midnight, which is the day before in UTC east of Greenwich.
      getTypeParser: ((oid: number, format?: "text" | "binary") =>
        oid === OID_DATE || oid === OID_INT8
          ? keepText
          : pg.types.getTypeParser(oid, format === "binary" ? "text" : format)) as typeof pg.types.getTypeParser,
    },
  });
  // Without these a connection that breaks, idle or in use, would end the process.
  // The pool repeats the error of an idle client, which the client's own handler has already reported.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", onLost));
  return pool;
}

/**
 * Sends the ISO date style when a connection starts, because the driver misreads every other format. The date style is one of the
 * few start-up parameters that poolers know and keep for each client.
 */
function isoClient(Client: typeof PgClient): typeof PgClient {
  // The driver's types lack this method, which returns the start-up parameters.
  const startupOf: () => object = Reflect.get(Client.prototype, "getStartupConf");
  return class extends Client {
    getStartupConf(): object {
      return { ...startupOf.call(this), DateStyle: "ISO" };
    }
  };
}

/**
 * Opens the database kept in a folder, in this process. A second process on the same folder would lose rows without a
 * word, so the folder is locked first.
 */
export async function openEmbedded(folder: string): Promise<Database> {
  const unlock = await lockFolder(folder);
  try {
    const { PGlite } = await import("@electric-sql/pglite");
    const pglite = await PGlite.create({
      dataDir: `${folder}/pg`,
      parsers: { [OID_DATE]: keepText, [OID_INT8]: keepText },
    });
    takeSeveralStatements(pglite);
    const { transaction } = pglite;
    pglite.transaction = (work) =>
      transaction.call(pglite, (tx) => {
        takeSeveralStatements(tx);
        return work(tx);
      }) as ReturnType<typeof work>;
    const close = pglite.close.bind(pglite);
    pglite.close = async () => {
      await close();
      await unlock();
    };
    const db = new Kysely<Tables>({ dialect: new UnlockedPGliteDialect({ pglite }) });
    // Kysely closes only what it has used, and the lock must go in any case.
    await db.connection().execute(async () => {});
    return db;
  } catch (cause) {
    await unlock();
    throw new AppError("database", `the embedded database in ${folder} could not be opened`, { cause });
  }
}

/** Behaves like pg: a text without parameters may hold several statements. The queue and the views need that. */
function takeSeveralStatements(to: Pick<PGlite | Transaction, "query" | "exec">): void {
  const { query } = to;
  to.query = async <Row>(text: string, parameters?: unknown[], options?: QueryOptions): Promise<Results<Row>> => {
    if (parameters !== undefined && parameters.length > 0)
      return query.call(to, text, parameters, options) as Promise<Results<Row>>;
    const results = await to.exec(text, options);
    // Only the caller knows the row type of its statement.
    return { fields: [], ...results.at(-1), rows: results.flatMap(({ rows }) => rows as Row[]) };
  };
}

/** The clock that all replicas share. */
export async function databaseNow(db: Database): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select pg_catalog.clock_timestamp() as now`.execute(db);
  const now = rows[0]?.now;
  if (!now) throw new AppError("database", "the database does not tell the time");
  return now;
}

// A pool that waits for a server that went away, so that a restart or a failover of it costs a run some time and no slices.

export type ReconnectOptions = {
  /** How long a server that was reached before is waited for. */
  readonly waitMs: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** What a statement may still take once the signal came. */
  readonly stoppingMs: number;
};

const RECONNECT_PAUSE_MS = 500;

/** Until the server was reached once nothing is waited for: that is a mistake in its address more often than an outage. */
function reconnectingPool(pool: PostgresPool, { waitMs, signal }: ReconnectOptions): PostgresPool {
  let reached = false;
  return {
    options: pool.options,
    ...(pool.Client && { Client: pool.Client }),
    end: () => pool.end(),
    async connect(): Promise<PostgresPoolClient> {
      const untilMs = performance.now() + waitMs;
      for (;;) {
        try {
          const client = await pool.connect();
          reached = true;
          return client;
        } catch (error) {
          if (!reached || !isConnectionError(error) || signal.aborted || performance.now() > untilMs) throw error;
          await sleep(RECONNECT_PAUSE_MS, undefined, { signal }).catch(() => {});
        }
      }
    },
  };
}
