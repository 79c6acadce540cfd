import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { expect, inject, onTestFinished, test } from "vitest";
import { openPostgres } from "../../src/db/connection/database.ts";
import { copyDatabase, testDatabase } from "./database.ts";
import { leftBehind } from "./pooled-sessions.ts";
import { POOL_SIZE, poolerVersion, startPooler } from "./pooler.ts";
import { poolerFiles } from "./pooler-settings.ts";
import { runStatement } from "./postgres-admin.ts";
import { startScript } from "./program.ts";

const { url: serverUrl, pooledUrl } = inject("postgres");
const { url } = await testDatabase();
const pooledTest = test.runIf(pooledUrl !== undefined);

const AT = { port: 6432, usersFile: "/folder/users.txt", poolSize: 5, version: "PgBouncer 1.18.0" };
const SERVER = { host: "127.0.0.1", port: 5432, user: "usage", password: "secret" };

test("quotes in a password or a path are doubled", () => {
  const { settings, users } = poolerFiles({ ...SERVER, host: "/it's", password: 'a"b' }, AT);
  expect(settings).toContain("* = host='/it''s' port=5432\n");
  expect(users).toBe('"usage" "a""b"\n');
});

test("the pooler asks for a password only if the server has one", () => {
  expect(poolerFiles(SERVER, AT).settings).toContain("auth_type = scram-sha-256\n");
  expect(poolerFiles({ ...SERVER, password: undefined }, AT).settings).toContain("auth_type = trust\n");
});

test.each([
  ["PgBouncer 1.18.0", false],
  ["PgBouncer 1.21.0", true],
  ["PgBouncer 2.0.0", true],
])("the settings for %s turn prepared statements off: %s", (version, told) => {
  expect(poolerFiles(SERVER, { ...AT, version }).settings.includes("max_prepared_statements = 0\n")).toBe(told);
});

test("a TEST_POOLER other than pgbouncer is refused", async () => {
  await expect(startPooler({ TEST_POOLER: "pgcat" }, serverUrl)).rejects.toThrow('expected pgbouncer, got "pgcat"');
});

test("if the pooler is not installed, the error says how to install it", () => {
  expect(() => poolerVersion("/nowhere")).toThrow("apt-get install pgbouncer");
});

pooledTest("many connections of the product share a few connections of the server", async () => {
  const pools = Array.from({ length: 3 }, () => openPostgres(url));
  const pids = await Promise.all(
    pools.flatMap((pool) =>
      [1, 2, 3, 4].map(() => sql<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(0.05)`.execute(pool)),
    ),
  );
  await Promise.all(pools.map((pool) => pool.destroy()));
  expect(new Set(pids.map(({ rows }) => rows[0]?.pid)).size).toBeLessThanOrEqual(POOL_SIZE);
});

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

pooledTest("a run that is killed leaves no pooler behind", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-killed-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const script = path.join(folder, "run.ts");
  await writeFile(
    script,
    `import { startPooler } from ${JSON.stringify(path.join(import.meta.dirname, "pooler.ts"))};
    const { url } = await startPooler(process.env, process.env.SERVER_URL);
    console.log("started", url);`,
  );
  await using run = startScript(script, [], { env: { TEST_POOLER: "pgbouncer", SERVER_URL: serverUrl } });
  const [, url = ""] = (await run.waitFor("started")).split(" ");
  expect(await runStatement(url, "select 1 as one")).toEqual([{ one: 1 }]);

  run.kill("SIGKILL");

  await expect.poll(() => runStatement(url, "select 1").catch((error) => error.code)).toBe("ECONNREFUSED");
});
