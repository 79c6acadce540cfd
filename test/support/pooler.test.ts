// What the pooler's tests rely on to notice a setting that the program leaves in a session of others.

import { expect, inject, test } from "vitest";
import { copyDatabase } from "./database.ts";
import { leftBehind } from "./pooled-sessions.ts";
import { runStatement } from "./postgres-admin.ts";

const pooledTest = test.runIf(inject("postgres").pooledUrl !== undefined);

pooledTest.for([
  ["set statement_timeout = '1min'", ["setting statement_timeout = 60000"]],
  ["select set_config('search_path', 'bi', false)", ["setting search_path = bi"]],
  ["prepare kept as select 1", ["prepared statement kept"]],
  ["select pg_advisory_lock(7)", ["advisory lock 7"]],
  ["listen kept", ["channel kept"]],
  ["create temporary table kept ()", ["temporary table kept"]],
  ["begin; set local statement_timeout = '1min'; select pg_advisory_xact_lock(7); commit", []],
] as const)("%s leaves behind: %o", async ([statement, left]) => {
  await using copy = await copyDatabase();
  await runStatement(copy.url, statement);
  expect(await leftBehind(copy.url)).toEqual(left);
  await runStatement(copy.url, "discard all");
});

pooledTest("if session state was left in a connection, the database is dropped and the test fails", async () => {
  const copy = await copyDatabase();
  await runStatement(copy.url, "set lock_timeout = '1s'");
  await expect(copy[Symbol.asyncDispose]()).rejects.toThrow("left behind in connections of the pooler: setting lock_");
  await expect(runStatement(copy.directUrl, "select 1")).rejects.toMatchObject({ code: "3D000" });
});
