// Which errors repeat a transaction, what a transaction sets, and that nothing is left on its connection.

import { type RawBuilder, sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { isAccessFailure, isConnectionError, isDatabaseFailure } from "../../../src/db/connection/errors.ts";
import { inTransaction, readAtOneMoment, type Tx } from "../../../src/db/connection/transaction.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";

const { db, url } = await testDatabase();
await runStatement(url, "create table public.note (text text unique deferrable initially deferred)");

const note = (text: string): RawBuilder<unknown> => sql`insert into public.note values (${text})`;
const failWith = (code: string): RawBuilder<unknown> =>
  sql`do ${sql.lit(`begin raise exception using errcode = '${code}', message = 'made up'; end`)}`;

async function countNotes(prefix: string): Promise<number> {
  const rows = await runStatement(url, `select from public.note where starts_with(text, '${prefix}')`);
  return rows.length;
}

test("a snapshot reads everything as of one moment", async () => {
  await readAtOneMoment(db, async (tx) => {
    const notes = async () => (await sql`select text from public.note`.execute(tx)).rows;
    const before = await notes();
    await note("meanwhile").execute(db);
    expect(await notes()).toEqual(before);
  });
});

test.each(["40001", "40P01", "55P03", "57014", "53300", "57P01", "57P03", "25006", "08006"])(
  "a transaction that the server ends with %s is repeated as a whole",
  async (code) => {
    let attempts = 0;
    await inTransaction(db, async (tx) => {
      attempts++;
      await note(`${code} ${attempts}`).execute(tx);
      if (attempts === 1) await failWith(code).execute(tx);
    });
    expect(attempts).toBe(2);
    expect(await countNotes(code)).toBe(1);
  },
);

test("a transaction whose connection is lost during a statement is repeated", async () => {
  let attempts = 0;
  await inTransaction(db, async (tx) => {
    attempts++;
    await note("during").execute(tx);
    if (attempts > 1) return;
    const { rows } = await sql<{ pid: number }>`select pg_catalog.pg_backend_pid() as pid`.execute(tx);
    const terminated = runStatement(url, `select pg_terminate_backend(${rows[0]?.pid}, 10000)`);
    await Promise.all([sql`select pg_catalog.pg_sleep(60)`.execute(tx), terminated]);
  });
  expect(attempts).toBe(2);
  expect(await countNotes("during")).toBe(1);
});

test("a transaction whose COMMIT fails is repeated", async () => {
  await runStatement(
    url,
    `create table public.fuse (burnt boolean);
     -- Fails each COMMIT until the second attempt.
     create function public.fuse() returns trigger language plpgsql as $$
       begin if not exists (select from public.note where text = 'commit 2') then raise exception using errcode = '40001'; end if; return null; end
     $$;
     create constraint trigger fuse after insert on public.fuse deferrable initially deferred for each row execute function public.fuse()`,
  );
  let attempts = 0;
  await inTransaction(db, async (tx) => {
    attempts++;
    await note(`commit ${attempts}`).execute(tx);
    await sql`insert into public.fuse values (true)`.execute(tx);
  });
  expect(attempts).toBe(2);
  expect(await countNotes("commit")).toBe(1);
});

test("a transaction that the server ends four times throws the last error", async () => {
  let attempts = 0;
  const tried = inTransaction(db, async (tx) => {
    attempts++;
    await note("given up").execute(tx);
    await failWith("40001").execute(tx);
  });
  await expect(tried).rejects.toMatchObject({ code: "40001" });
  expect(attempts).toBe(4);
  expect(await countNotes("given up")).toBe(0);
});

test.each(["23505", "22003", "42501", "53100"])("a transaction that fails with %s is not repeated", async (code) => {
  let attempts = 0;
  const tried = inTransaction(db, async (tx) => {
    attempts++;
    await failWith(code).execute(tx);
  });
  await expect(tried).rejects.toMatchObject({ code });
  expect(attempts).toBe(1);
});

test("an error of the work rolls the transaction back", async () => {
  const tried = inTransaction(db, async (tx) => {
    await note("undone").execute(tx);
    throw new Error("the work's own");
  });
  await expect(tried).rejects.toThrow("the work's own");
  expect(await countNotes("undone")).toBe(0);
});

const SETTINGS = ["search_path", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"];

async function settingsOf(on: Database): Promise<readonly (string | undefined)[]> {
  const { rows } = await sql<{ name: string; setting: string }>`
    select name, pg_catalog.current_setting(name) as setting
    from pg_catalog.unnest(${SETTINGS}::text[]) with ordinality as names (name, i) order by i
  `.execute(on);
  return rows.map(({ setting }) => setting);
}

test("a transaction has time limits and a search path of its own", async () => {
  expect(await inTransaction(db, settingsOf)).toEqual(["pg_catalog", "20s", "25s", "1min"]);
});

/** Begins four transactions, and runs `statement` when all have begun: each has a connection of its own, even behind a pooler. */
async function inFour<T>(begin: (work: (tx: Tx) => Promise<unknown>) => Promise<T>, statement: RawBuilder<unknown>) {
  const allBegun = Promise.withResolvers<void>();
  let begun = 0;
  const work = async (tx: Tx) => {
    await sql`select`.execute(tx);
    if (++begun === 4) allBegun.resolve();
    await allBegun.promise;
    return (await statement.execute(tx)).rows;
  };
  return Promise.all([1, 2, 3, 4].map(() => begin(work)));
}

test("no connection of the pool keeps a setting, a prepared statement, a lock or a temporary table", async () => {
  await inFour((work) => inTransaction(db, work), sql`select ${"a parameter"}::text`);
  await inFour((work) => inTransaction(db, work).catch(() => {}), failWith("23505"));
  // Without application_name and DateStyle: they are start-up parameters, which a pooler sets anew for each client.
  const left = sql`
    select (select json_agg(name) from pg_settings where source = 'session' and name not in ('application_name', 'DateStyle')) as settings,
      (select json_agg(name) from pg_prepared_statements) as prepared,
      (select json_agg(channel) from pg_listening_channels() as channel) as channels,
      (select json_agg(locktype) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,
      (select json_agg(relname) from pg_class where relpersistence = 't') as temporary
  `;
  const none = [{ settings: null, prepared: null, channels: null, locks: null, temporary: null }];
  expect(await inFour((work) => db.transaction().execute(work), left)).toEqual([none, none, none, none]);
});

const errorWith = (code: string, message = "made up"): Error => Object.assign(new Error(message), { code });

function kindOf(error: Error): string {
  const kinds = [isConnectionError(error) && "connection", isAccessFailure(error) && "denied access"];
  return kinds.filter((kind) => kind !== false).join(" and ") || "neither";
}

test("a failure of the database is neither one of its data nor one of the file system", () => {
  const codes = ["40001", "42P01", "ECONNRESET", "23505", "EPERM", "EROFS"];
  expect(codes.filter((code) => isDatabaseFailure(errorWith(code)))).toEqual(["40001", "42P01", "ECONNRESET"]);
});

/** A connection error may pass by itself, and a denied access will not. Too many connections (53300) count as both. */
const CODES = {
  connection: "08006 08P01 57P01 57P03 ECONNREFUSED ECONNRESET ETIMEDOUT EAI_AGAIN",
  "connection and denied access": "53300",
  "denied access": "28P01 28000 3D000 CERT_HAS_EXPIRED ERR_TLS_CERT_ALTNAME_INVALID EPROTO",
  neither: "23505 42P01 ENOENT",
};

test.each(Object.entries(CODES))("an error is of the kind %s with these codes: %s", (kind, codes) => {
  for (const code of codes.split(" ")) expect([code, kindOf(errorWith(code))]).toEqual([code, kind]);
});

/** A pooler has one code for all errors, so the message decides. */
const MESSAGES = {
  "denied access": [
    "SASL authentication failed",
    "password authentication failed",
    'password authentication failed for user "usage"',
    "no such database: usage",
    "no such user: usage",
    'database "usage" does not exist',
    'role "usage" does not exist',
    'database "usage" is disabled',
    'role "usage" is not permitted to log in',
    'no pg_hba.conf entry for host "127.0.0.1"',
    "not allowed",
  ],
  connection: [
    "client_login_timeout (server down)",
    "server conn crashed?",
    "server login has been failing, try again later (server_login_retry)",
    "the database system is starting up",
    "no more connections allowed (max_client_conn)",
    "query_wait_timeout",
  ],
};

test.each(Object.entries(MESSAGES))("an error of a pooler is of the kind %s with these messages", (kind, messages) => {
  for (const message of messages) expect([message, kindOf(errorWith("08P01", message))]).toEqual([message, kind]);
});

test("a host with several addresses has a connection error only if each address has one", () => {
  const refused = errorWith("ECONNREFUSED");
  expect(isConnectionError(new AggregateError([refused, refused]))).toBe(true);
  expect(isConnectionError(new AggregateError([refused, errorWith("28P01")]))).toBe(false);
});
