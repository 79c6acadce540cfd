// What `check` reports about the database and about the encryption of the connection to it.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { checkEncryption, checkInstallation } from "../../../src/db/connection/installation.ts";
import { migrateToLatest } from "../../../src/db/connection/migrate.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { emptyDatabase } from "./empty-database.ts";

test("a superuser as owner, another encoding and a read-only database are reported", async () => {
  await using empty = await emptyDatabase();
  await runStatement(
    empty.directUrl,
    `create database ${empty.name}_old encoding 'LATIN1' locale 'C' template template0`,
  );
  const url = empty.directUrl.replace(empty.name, `${empty.name}_old`);
  try {
    await using db = openPostgres(url);
    await migrateToLatest(db);
    await runStatement(url, `alter database ${empty.name}_old set default_transaction_read_only = on`);
    await using later = openPostgres(url);
    expect(await checkInstallation(later)).toEqual([
      { what: "writes", state: "fail", text: expect.stringContaining("default_transaction_read_only is on") },
      { what: "encoding", state: "warn", text: expect.stringContaining("expected UTF8, found LATIN1") },
      { what: "role", state: "warn", text: expect.stringMatching(/^postgres is a superuser: /) },
    ]);
  } finally {
    await runStatement(empty.directUrl, `drop database ${empty.name}_old with (force)`);
  }
});

test("an owner with only the rights it needs is not reported, a schema that belongs to a superuser is", async () => {
  await using empty = await emptyDatabase();
  const role = `${empty.name}_owner`;
  await runStatement(
    empty.directUrl,
    `create role ${role} login password 'just-for-this-test'; alter database ${empty.name} owner to ${role}`,
  );
  try {
    const url = new URL(empty.directUrl);
    url.username = role;
    url.password = "just-for-this-test";
    await using db = openPostgres(url.href);
    await migrateToLatest(db);
    expect(await checkInstallation(db)).toEqual([]);
    await using admin = openPostgres(empty.directUrl);
    await sql`alter schema bi owner to postgres`.execute(admin);
    await sql`grant usage on schema bi to ${sql.id(role)}`.execute(admin);
    expect(await checkInstallation(db)).toEqual([
      { what: "role", state: "warn", text: expect.stringMatching(/^postgres is a superuser: /) },
    ]);
    await runStatement(empty.directUrl, `reassign owned by ${role} to current_user; drop owned by ${role}`);
  } finally {
    await runStatement(empty.directUrl, `drop role ${role}`);
  }
});

test.each([
  ["postgres://u:p@db.example.com/usage", undefined, "not encrypted"],
  ["postgres://u:p@db.example.com/usage?sslmode=disable", "require", "not encrypted"],
  ["postgres://u:p@db.example.com/usage?sslmode=no-verify", undefined, "sslmode=no-verify takes any certificate"],
  ["postgres://u:p@db.example.com/usage?ssl=no-verify", undefined, "takes any certificate"],
  ["postgres://u:p@db.example.com/usage", "no-verify", "takes any certificate"],
  ["postgres://u:p@db.example.com/usage?uselibpqcompat=true&sslmode=require", undefined, "takes any certificate"],
  ["postgres://u:p@db.example.com/usage?uselibpqcompat=true&sslmode=prefer", undefined, "takes any certificate"],
])("%s with PGSSLMODE %s is reported: %s", (url, environment, text) => {
  expect(checkEncryption(new URL(url), environment)).toEqual([
    { what: "sslmode", state: "warn", text: expect.stringContaining(text) },
  ]);
});

test.each([
  ["postgres://u:p@127.0.0.1:5432/usage", undefined],
  ["postgres://u:p@localhost/usage?sslmode=no-verify", undefined],
  ["postgres://u:p@[::1]/usage", undefined],
  ["postgres:///usage?host=/var/run/postgresql", undefined],
  ["postgres://u:p@db.example.com/usage?sslmode=verify-full", undefined],
  // Unlike libpq, the driver verifies the server's certificate with `require` too.
  ["postgres://u:p@db.example.com/usage?sslmode=require", undefined],
  ["postgres://u:p@db.example.com/usage", "verify-full"],
  ["postgres://u:p@db.example.com/usage?uselibpqcompat=true&sslmode=require&sslrootcert=ca.pem", undefined],
])("%s with PGSSLMODE %s is not reported", (url, environment) => {
  expect(checkEncryption(new URL(url), environment)).toEqual([]);
});
