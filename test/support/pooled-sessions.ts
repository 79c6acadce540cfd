// Finds session state that clients of the pooler left in the server connections that they share.

import pg from "pg";
import { POOL_SIZE } from "./pooler.ts";

/** Settings that the pooler itself sets for each client, to the values that the client requested. */
const KEPT_BY_POOLER = "'application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings'";

const LEFT_BEHIND = `
  select 'advisory lock ' || objid as what from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
  union all select 'prepared statement ' || name from pg_prepared_statements
  union all select 'setting ' || name || ' = ' || setting from pg_settings
    where source = 'session' and name not in (${KEPT_BY_POOLER})
  union all select 'channel ' || channel from pg_listening_channels() as channel
  union all select 'temporary table ' || relname from pg_class where relnamespace = pg_my_temp_schema()`;

/** Opens as many transactions at once as the pool has connections, so that each connection is inspected. */
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
