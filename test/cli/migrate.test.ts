// The command `migrate`, on databases that have nothing yet.

import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, inject } from "vitest";
import { databaseUrl, runStatement } from "../support/postgres-admin.ts";
import { smallConfig } from "./small-config.ts";
import { worldTest } from "./world.ts";

const test = worldTest();

/** Databases of this name are dropped when the tests are over. */
async function emptyDatabase(): Promise<string> {
  const { url, template } = inject("postgres");
  const name = `${template}_${randomBytes(6).toString("hex")}`;
  await runStatement(url, `create database ${name}`);
  return databaseUrl(url, name);
}

test("the first time applies every migration, and the second time none", async ({ world }) => {
  const env = { DATABASE_URL: await emptyDatabase() };

  const first = await world.run(["migrate"], env);
  const second = await world.run(["migrate"], env);

  expect(first).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^applied 0001_create_usage\napplied 0002_/),
    stderr: "",
  });
  expect(second).toMatchObject({ status: 0, stdout: "the database is up to date\n", stderr: "" });
});

test("three at once apply each migration once, and the database can be used", async ({ world }) => {
  const env = { DATABASE_URL: await emptyDatabase() };

  const results = await Promise.all([1, 2, 3].map(() => world.run(["migrate", "--json"], env)));

  const applied = results.map(({ stdout }) => JSON.parse(stdout).applied.length).sort();
  expect(results.map(({ status }) => status)).toEqual([0, 0, 0]);
  expect(applied).toEqual([0, 0, expect.any(Number)]);
  expect(applied[2]).toBeGreaterThan(2);
  const emulator = await world.serve();
  await world.configure(smallConfig(emulator.url));
  expect(await world.run(["export"], env)).toMatchObject({ status: 0 });
});

test("killed in the middle, it leaves nothing half done", async ({ world }) => {
  const url = await emptyDatabase();
  await using admin = await session(url);
  // The second migration makes this schema, and has to wait for who makes it at the same time.
  await admin.query("begin; create schema bi");
  const program = world.start(["migrate"], { DATABASE_URL: url });
  await expect.poll(() => waiting(url), { timeout: 20_000 }).toBe(1);
  program.kill("SIGKILL");
  await program.ended;
  await admin.query("rollback");

  const again = await world.run(["migrate"], { DATABASE_URL: url });

  expect(again).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^applied 0001_create_usage\napplied 0002_/),
  });
});

test("a database of a newer version is left alone, and says which version it needs", async ({ world }) => {
  const env = { DATABASE_URL: await emptyDatabase() };
  await world.run(["migrate"], env);
  await runStatement(
    env.DATABASE_URL,
    "insert into usage_export.kysely_migration values ('9999_from_the_future', now()::text)",
  );
  const emulator = await world.serve();
  await world.configure(smallConfig(emulator.url));

  const result = await world.run(["export"], env);

  expect(result).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/newer version \(it has 9999_from_the_future\)/),
  });
  expect(emulator.requests).toEqual([]);
});

async function session(url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return { query: (text: string) => client.query(text), [Symbol.asyncDispose]: () => client.end() };
}

/** How many sessions wait for another one. */
async function waiting(url: string): Promise<number> {
  const name = new URL(url).pathname.slice(1);
  const rows = await runStatement(
    url,
    `select from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`,
  );
  return rows.length;
}
