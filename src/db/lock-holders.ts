// Finds the sessions that block a change of the schema: they have read what is to change, and their transaction is still open.

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import type { Database } from "./database.ts";

type Holder = {
  readonly pid: number;
  readonly transaction: string;
  readonly user: string | null;
  readonly application: string | null;
  readonly relations: readonly string[];
};

/** A session that still holds its locks after this time is not just running a short query. */
const SAMPLE_MS = 300;
const NAMED_MAX = 3;

/** Names the sessions and the next step, worded as the beginning of a sentence. */
export async function describeLockHolders(db: Database): Promise<string> {
  const before = await readHolders(db);
  await sleep(SAMPLE_MS);
  const transactions = new Set(before.map(({ transaction }) => transaction));
  const holders = (await readHolders(db)).filter(({ transaction }) => transactions.has(transaction));
  if (holders.length === 0)
    return "the objects to be changed are in use, but the sessions that use them could not be found";
  return holders.slice(0, NAMED_MAX).map(describe).join("; ");
}

function describe({ pid, user, application, relations }: Holder): string {
  const [first = "", ...others] = relations;
  const what = others.length === 0 ? `${first} is` : `${first} and ${others.length} more are`;
  const who = [`user ${user ?? "unknown"}`, ...(application ? [application] : [])]
    .join(", ")
    .replaceAll(/[^ -~]/g, "?");
  return `${what} in use by process ${pid} of the database (${who}), whose transaction is open: end it there, or by select pg_terminate_backend(${pid})`;
}

async function readHolders(db: Database): Promise<readonly Holder[]> {
  const { rows } = await sql<Holder>`
    select l.pid, l.virtualtransaction as transaction, a.usename::text as "user", a.application_name as application,
      array_agg(distinct n.nspname || '.' || c.relname order by n.nspname || '.' || c.relname) as relations
    from pg_catalog.pg_locks l
    join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
    join pg_catalog.pg_class c on c.oid = l.relation and c.relkind in ('r', 'v')
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('bi', 'usage_export')
    left join pg_catalog.pg_stat_activity a on a.pid = l.pid
    where l.granted and l.pid <> pg_backend_pid()
    group by l.pid, l.virtualtransaction, a.usename, a.application_name
    order by l.pid
  `.execute(db);
  return rows;
}
