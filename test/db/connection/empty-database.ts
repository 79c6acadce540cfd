// Creates databases without a schema, for tests of migrations.

import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { dropDatabase, urlsOf } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";

/** The database is dropped when it is disposed of. `options` are those of "create database". */
export async function emptyDatabase(options = "") {
  const server = inject("postgres");
  // The name begins like those of all databases of this test run, so that it is dropped with them in any case.
  const name = `${server.template}_empty_${randomBytes(6).toString("hex")}`;
  await runStatement(server.url, `create database ${name} ${options}`);
  return { name, ...urlsOf(name), [Symbol.asyncDispose]: () => dropDatabase(name) };
}

/** The names of the program's schemas that exist. */
export async function schemasOf(url: string): Promise<readonly unknown[]> {
  const statement = "select nspname from pg_namespace where nspname in ('bi', 'usage_export') order by nspname";
  return (await runStatement(url, statement)).map(({ nspname }) => nspname);
}
