// Starts PgBouncer in transaction mode in front of the test server, in a process of its own, if TEST_POOLER is set.

import { fileURLToPath } from "node:url";
import pg from "pg";
import { z } from "zod";
import { startKept } from "./kept-process.ts";

const KEEPER = fileURLToPath(new URL("./pooler-keeper.ts", import.meta.url));
const Ready = z.object({ url: z.string() });

export const POOLER_PROGRAM = "pgbouncer";

/** Small, so that clients always share server connections. */
export const POOL_SIZE = 5;

/** Returns the URL of the server through the pooler, or undefined if TEST_POOLER is not set. */
export async function startPooler(env: Readonly<Record<string, string | undefined>>, serverUrl: string) {
  if (env.TEST_POOLER === undefined) return undefined;
  if (env.TEST_POOLER !== "pgbouncer") {
    throw new Error(`TEST_POOLER: expected pgbouncer, got "${env.TEST_POOLER}"`);
  }
  // Debian installs it in a folder that is only in root's PATH.
  const PATH = `${env.PATH}:/usr/sbin`;
  const { ready, stop } = await startKept("PgBouncer", KEEPER, { PATH, POOLED_SERVER_URL: serverUrl });
  return { ...Ready.parse(ready), stop };
}

/** Settings that the pooler itself sets for each client, to the values that the client requested. */
const KEPT_BY_POOLER = "'application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings'";

const LEFT_BEHIND = `
  select 'advisory lock ' || objid as what from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
  union all select 'prepared statement ' || name from pg_prepared_statements
  union all select 'setting ' || name || ' = ' || setting from pg_settings
    where source = 'session' and name not in (${KEPT_BY_POOLER})
  union all select 'channel ' || channel from pg_listening_channels() as channel
  union all select 'temporary table ' || relname from pg_class where relnamespace = pg_my_temp_schema()`;

/** What sessions left behind in the pooler's connections. A transaction for each connection is open at once, so that each is inspected. */
export async function leftBehind(pooledUrl: string): Promise<readonly string[]> {
  const clients = Array.from({ length: POOL_SIZE }, () => new pg.Client({ connectionString: pooledUrl }));
  try {
    await Promise.all(clients.map((client) => client.connect()));
    await Promise.all(clients.map((client) => client.query("begin")));
    const found = await Promise.all(clients.map((client) => client.query<{ what: string }>(LEFT_BEHIND)));
    return found.flatMap(({ rows }) => rows.map(({ what }) => what));
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}
