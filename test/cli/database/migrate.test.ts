// The command `migrate`, mostly on empty databases.

import { randomBytes } from "node:crypto";
import { expect, inject } from "vitest";
import { urlsOf } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const test = programTest();

/** Makes an empty database, which is dropped at the end of the test run because of its name. Returns the variables for it. */
async function emptyDatabase(): Promise<Record<"DATABASE_URL" | "LOG_LEVEL", string>> {
  const { url: serverUrl, template } = inject("postgres");
  const name = `${template}_${randomBytes(6).toString("hex")}`;
  await runStatement(serverUrl, `create database ${name}`);
  // Past the pooler, if the tests use one.
  return { DATABASE_URL: urlsOf(name).directUrl, LOG_LEVEL: "warn" };
}

test("the first migrate applies every migration, and the second none", async ({ context }) => {
  const env = await emptyDatabase();

  const first = await context.run(["migrate"], env);
  const second = await context.run(["migrate"], env);

  expect(first).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^applied 0001_baseline\ncreated \d+ views and functions\n$/),
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
