// The command `migrate`, mostly on empty databases.

import { randomBytes } from "node:crypto";
import { expect, inject } from "vitest";
import { urlsOf } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const test = programTest();

/** Makes an empty database, which is dropped at the end of the test run because of its name. Returns the variables for it. */
async function emptyDatabase(): Promise<Record<"DATABASE_URL" | "MIGRATION_DATABASE_URL" | "LOG_LEVEL", string>> {
  const { url: serverUrl, template } = inject("postgres");
  const name = `${template}_${randomBytes(6).toString("hex")}`;
  await runStatement(serverUrl, `create database ${name}`);
  const { url, directUrl } = urlsOf(name);
  return { DATABASE_URL: url, MIGRATION_DATABASE_URL: directUrl, LOG_LEVEL: "warn" };
}

test("the first migrate applies every migration, and the second none", async ({ context }) => {
  const env = await emptyDatabase();

  const first = await context.run(["migrate"], env);
  const second = await context.run(["migrate"], env);

  expect(first).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^applied 0001_baseline\nreplaced \d+ views and functions\n$/),
    stderr: "",
  });
  expect(second).toMatchObject({ status: 0, stdout: "the database is up to date\n", stderr: "" });
});

test("check on a database without the tables says so, with the next step", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));

  const checked = await context.run(["check"], await emptyDatabase());

  expect(checked).toMatchObject({
    status: 1,
    stdout: expect.stringContaining("FAIL schema: the database is not up to date; run: usage-export migrate\n"),
  });
});

test("migrate uses MIGRATION_DATABASE_URL if it is set, and no other command does", async ({ context }) => {
  const { MIGRATION_DATABASE_URL: itsOwn } = await emptyDatabase();
  const nobody = "postgres://nobody@127.0.0.1:1/nothing";
  await context.configure(smallConfig("https://api.example.com"));

  const migrated = await context.run(["migrate"], { DATABASE_URL: nobody, MIGRATION_DATABASE_URL: itsOwn });
  const env = { DATABASE_URL: itsOwn, MIGRATION_DATABASE_URL: nobody, LOG_LEVEL: "warn" };
  const status = await context.run(["status"], env);

  expect(migrated).toMatchObject({ status: 0, stdout: expect.stringMatching(/^applied 0001_baseline\n/) });
  expect(status).toMatchObject({ status: 0, stderr: "" });
});

test("an empty MIGRATION_DATABASE_URL is refused", async ({ context }) => {
  const { MIGRATION_DATABASE_URL: url } = await emptyDatabase();
  expect(await context.run(["migrate"], { DATABASE_URL: url, MIGRATION_DATABASE_URL: "" })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("MIGRATION_DATABASE_URL is empty"),
  });
});

test.for([
  [
    "is no URL",
    (password: string) => `usage:${password}@127.0.0.1`,
    2,
    "MIGRATION_DATABASE_URL: expected postgres://user:password@host:port/database",
  ],
  [
    "nobody answers at",
    (password: string) => `postgres://usage:${password}@127.0.0.1:1/usage`,
    1,
    "the database at 127.0.0.1:1/usage (MIGRATION_DATABASE_URL) can't be used: connect ECONNREFUSED",
  ],
] as const)(
  "a MIGRATION_DATABASE_URL that %s is named in the error, without its password",
  async ([_, url, status, message], { context }) => {
    const result = await context.run(["migrate"], {
      MIGRATION_DATABASE_URL: url(context.newSecret()),
      LOG_LEVEL: "warn",
    });

    expect(result).toMatchObject({ status, stdout: "", stderr: expect.stringContaining(message) });
    expect(result.stderr.trim().split("\n")).toHaveLength(1);
  },
);

test("a database of a newer version is not used, and the error names that version", async ({ context }) => {
  const env = await emptyDatabase();
  await context.run(["migrate"], env);
  await runStatement(
    env.DATABASE_URL,
    "update usage_export.schema_version set migrations = '{0001_baseline,9999_from_the_future}', program_version = '9.9.9'",
  );
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));

  const result = await context.run(["export"], env);

  expect(result).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/newer version \(9\.9\.9, this is/),
  });
  expect(emulator.requests).toEqual([]);
});
