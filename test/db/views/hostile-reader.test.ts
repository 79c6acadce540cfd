// An attacker, a member of usage_reader, shadows what the views and functions of bi use: types, functions, operators, casts and tables.
// The attacker creates them as temporary objects, or in a schema that is first in its search path. Nothing of it may run as another
// role, and the attacker must read the same rows as any reader.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { finishRun, startRun } from "../../../src/db/jobs/runs.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { fail, newSeries, setDue, store } from "../stored-usage.ts";

const { db, directUrl, read } = await testDatabase();
const attacker = `attacker_${randomUUID().slice(0, 8)}`;
const PASSWORD = "just-for-this-test";

beforeAll(async () => {
  // More than a reader normally has: a schema in which it may create permanent objects.
  await runStatement(
    directUrl,
    `create role ${attacker} login password '${PASSWORD}' in role usage_reader; create schema evil authorization ${attacker}`,
  );
  for (const grouping of ["none", "accessor", "endpoint"] as const) {
    const { seriesId } = await newSeries(db, grouping, { windowDays: 7 });
    await setDue(db, [seriesId], "2026-03-10", "2026-03-17");
    for (const requests of ["1", "2"]) {
      await store(db, seriesId, { "2026-03-16": grouping === "none" ? { requests } : { listen: requests } });
    }
    await fail(db, seriesId, ["2026-03-17"]);
  }
  // A run that goes on would be shown as interrupted once the test takes longer than a heartbeat may.
  const runId = randomUUID();
  await startRun(db, { runId, kind: "export", job: "nightly", trigger: "manual" });
  await finishRun(db, runId, "ok", undefined);
});

afterAll(() => runStatement(directUrl, `drop owned by ${attacker} cascade; drop role ${attacker}`));

type Session = AsyncDisposable & {
  readonly query: (text: string) => Promise<readonly pg.QueryResultRow[]>;
  /** The roles under which the spy function was called. */
  readonly calledAs: Set<string>;
};

async function session(): Promise<Session> {
  const url = new URL(directUrl);
  url.username = attacker;
  url.password = PASSWORD;
  const client = new pg.Client({ connectionString: url.href });
  const calledAs = new Set<string>();
  client.on("notice", ({ message = "" }) => {
    if (message.startsWith("called as ")) calledAs.add(message.slice("called as ".length));
  });
  await client.connect();
  return {
    calledAs,
    query: async (text) => [await client.query(text)].flat().flatMap(({ rows }) => rows),
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** Every view and function of bi, with a query that reads all its rows. */
const objects = await read(sql<{ name: string; query: string }>`
  select relname as name, format('select * from bi.%I', relname) as query
  from pg_class where relnamespace = 'bi'::regnamespace
  union all
  select proname, format('select * from bi.%I(%s)', proname, (
    select string_agg(case argument when 'timestamptz'::regtype then 'pg_catalog.now()' else 'null::pg_catalog.' || typname end, ', ' order by n)
    from unnest(proargtypes) with ordinality as called (argument, n) join pg_type t on t.oid = argument
  ))
  from pg_proc where pronamespace = 'bi'::regnamespace
  order by name
`);

/** A function that reports the role under which it is called, as a notice: no rollback undoes a notice. */
const SPY = (schema: string) => `
  create function ${schema}.spy() returns pg_catalog.bool language plpgsql as $spy$
  begin raise notice 'called as %', current_user; return true; end
  $spy$`;

/** For each type, a domain with the name of the type, which calls the spy for each value. */
const types = await read(sql<{ name: string }>`
  select typname as name from pg_type
  where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b' and typcategory <> 'A' and typname !~ '^(_|pg_|reg)'
`);
const typesIn = (schema: string) =>
  types.map(({ name }) => `create domain ${schema}."${name}" as pg_catalog."${name}" check (${schema}.spy())`);

/** For each table and view of the product and of the catalogue, a temporary table with its name. */
const tables = await read(sql<{ text: string }>`
  select distinct format('create temporary table %I ()', relname) as text from pg_class
  where relkind in ('r', 'v') and relnamespace in ('bi'::regnamespace, 'usage_export'::regnamespace, 'pg_catalog'::regnamespace)
`);

const TYPES = ["text", "int4", "int8", "date", "bool", "numeric", "timestamptz", "timestamp"].map(
  (name) => `pg_catalog.${name}`,
);

function functionsIn(schema: string): readonly string[] {
  const takes = (name: string, type: string, returns: string) => `
    create function ${schema}.${name}(${type}) returns ${returns} language sql as
    $f$ select case when ${schema}.spy() then null::${returns} end $f$`;
  return [
    `create function ${schema}.now() returns pg_catalog.timestamptz language sql as
     $f$ select case when ${schema}.spy() then timestamptz '2001-01-01' end $f$`,
    `create function ${schema}.finality(pg_catalog.date, pg_catalog.int4, pg_catalog.timestamptz, pg_catalog.timestamptz)
     returns pg_catalog.text language sql as $f$ select case when ${schema}.spy() then 'final' end $f$`,
    ...TYPES.flatMap((type) =>
      ["abs", "round", "to_json", "timezone", "unnest"].map((name) => takes(name, type, type)),
    ),
    ...TYPES.map(
      (type) => `create function ${schema}.compare(${type}, ${type}) returns pg_catalog.bool language sql as
        $f$ select ${schema}.spy() $f$`,
    ),
  ];
}

function operatorsIn(schema: string): readonly string[] {
  const operators = TYPES.flatMap((type) =>
    ["=", "<>", "<", ">", "<=", ">=", "+", "-", "||"].map(
      (name) =>
        `create operator ${schema}.${name} (leftarg = ${type}, rightarg = ${type}, function = ${schema}.compare)`,
    ),
  );
  return [...functionsIn(schema), ...operators];
}

/** A cast from a type of the attacker to the type of the argument of bi.usage_as_of. */
const CASTS = [
  "create type evil.moment as enum ('now')",
  `create function evil.to_moment(evil.moment) returns pg_catalog.timestamptz language sql as
   $f$ select case when evil.spy() then pg_catalog.now() end $f$`,
  "create cast (evil.moment as pg_catalog.timestamptz) with function evil.to_moment(evil.moment) as implicit",
];

/** In the schema, which is then the first that is searched. */
const inSchema = (schema: string, statements: readonly string[]) => [
  ...[SPY(schema), ...statements],
  `set local search_path = ${schema}, pg_catalog`,
];

const ATTACKS: readonly (readonly [string, readonly string[]])[] = [
  ["types in pg_temp, which is searched in any case", [SPY("pg_temp"), ...typesIn("pg_temp")]],
  ["types in pg_temp", inSchema("pg_temp", typesIn("pg_temp"))],
  ["types", inSchema("evil", typesIn("evil"))],
  ["functions in pg_temp", inSchema("pg_temp", functionsIn("pg_temp"))],
  ["functions", inSchema("evil", functionsIn("evil"))],
  ["operators in pg_temp", inSchema("pg_temp", operatorsIn("pg_temp"))],
  ["operators", inSchema("evil", operatorsIn("evil"))],
  ["tables", tables.map(({ text }) => text)],
  ["casts", inSchema("evil", CASTS)],
];

/** What each object of bi shows: its rows, or its error. After an error the next objects are still read. */
async function readAll(reader: Session): Promise<ReadonlyMap<string, string>> {
  const results = new Map<string, string>();
  for (const { name, query } of objects) {
    await reader.query("savepoint one");
    const rows = await reader.query(query).catch((error: Error) => [{ error: error.message }]);
    await reader.query("rollback to savepoint one");
    results.set(name, JSON.stringify(rows));
  }
  return results;
}

test.each(ATTACKS)("a reader's own %s change nothing that bi shows", async (what, statements) => {
  // In another session, because a session may keep the plans that it made before the attack.
  await using other = await session();
  await other.query("begin");
  const ordinary = await readAll(other);
  for (const name of ["usage_as_of", "usage_by_endpoint", "coverage", "restatements"])
    expect([name, ordinary.get(name)]).not.toEqual([name, expect.toBeOneOf(["[]", undefined])]);

  await using reader = await session();
  await reader.query("begin");
  for (const statement of statements) {
    await reader.query("savepoint one");
    // Some types can't be the base of a domain.
    await reader.query(statement).catch(() => reader.query("rollback to savepoint one"));
  }
  reader.calledAs.clear();
  const attacked = await readAll(reader);
  if (what === "casts") await reader.query("select * from bi.usage_as_of('now'::evil.moment)");
  await reader.query("rollback");

  expect([...reader.calledAs].filter((who) => who !== attacker)).toEqual([]);
  expect([...attacked].filter(([name, rows]) => rows !== ordinary.get(name))).toEqual([]);
});
