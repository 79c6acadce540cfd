// Every command says which database it uses, so that a forgotten DATABASE_URL is noticed. If the database can't be used, the command says
// so in one sentence without the password, and does not call the service.

import { spawnSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { expect } from "vitest";
import { emptyDatabase } from "../../db/connection/empty-database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { MAIN } from "../../support/program.ts";
import { databaseTest } from "../program-context.ts";

const { test, url } = await databaseTest();

const COMMANDS = [["migrate"], ["export"], ["status"], ["dump", "--view", "coverage", "--format", "csv"]];

/** The URL of the test's database with one part replaced. */
const urlWith = (part: { readonly [name in "username" | "password" | "pathname"]?: string }) =>
  Object.assign(new URL(url), part).href;

test.for(COMMANDS)("%s says which server it uses, without the password", async (args, { context }) => {
  await context.setUp();
  const password = context.newSecret();
  const { stderr } = await context.run(args, { DATABASE_URL: urlWith({ password }) });
  const { host, pathname, username } = new URL(url);
  const lines = stderr.split("\n").filter((line) => line.startsWith("{"));
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ msg: "database", database: `${username}@${host}${pathname}`, by: "DATABASE_URL" }),
  );
  expect(stderr).not.toContain(password);
});

test("at a terminal the database is named in a line of plain text", async ({ context, skip }) => {
  skip(process.platform !== "linux", "needs the command script of util-linux");
  await context.setUp();
  const { stdout } = spawnSync("script", ["-qec", `${process.execPath} ${MAIN} status`, "/dev/null"], {
    cwd: context.folder,
    env: { PATH: process.env.PATH, DATABASE_URL: url },
    encoding: "utf8",
  });
  const { host, pathname, username } = new URL(url);
  expect(stdout).toContain(`database: ${username}@${host}${pathname} (DATABASE_URL)\r\n`);
});

const EMPTY = /^usage-export: DATABASE_URL is empty: expected postgres:.* remove the variable to use/m;

// Spaces count as empty.
const REFUSED: readonly (readonly [args: readonly string[], database: string | undefined, message: RegExp])[] = [
  ...[...COMMANDS, ["start"], ["check", "--offline"]].map((args) => [args, "  ", EMPTY] as const),
  [["start", "--embedded"], "", EMPTY],
  [["start"], undefined, /^usage-export: DATABASE_URL is not set: expected postgres:.*--embedded/],
  [["start", "--embedded"], url, /^usage-export: --embedded: DATABASE_URL is set/],
];

test.for(REFUSED)("%j refuses DATABASE_URL=%j", async ([args, DATABASE_URL, message], { context }) => {
  await context.setUp();
  const refused = { status: 2, stdout: "", stderr: expect.stringMatching(message) };
  expect(await context.run(args, { DATABASE_URL })).toMatchObject(refused);
  expect(await readdir(context.folder)).toEqual(["jobs.config.json"]);
});

const unusable = (message: string) => `the database at .* can't be used: ${message}`;
const WRONG_URL = "DATABASE_URL: expected postgres://user:password@host:port/database";
const NO_SERVER = "127.0.0.1:1/usage";

test.for<readonly [name: string, url: (password: string) => string, status: number, message: string]>([
  [
    "a port where nobody listens",
    (password) => `postgres://usage:${password}@${NO_SERVER}`,
    1,
    `the database at ${NO_SERVER} can't be used: connect ECONNREFUSED \\S+; start the server at this address, or correct DATABASE_URL`,
  ],
  ["a wrong password", (password) => urlWith({ password }), 1, unusable("(password|SASL) authentication failed.*")],
  [
    "a database that does not exist",
    () => urlWith({ pathname: "/no_such" }),
    1,
    unusable('database "no_such" does not exist; correct DATABASE_URL, or what the server allows'),
  ],
  ["another kind of URL", (password) => `mysql://usage:${password}@127.0.0.1/usage`, 2, `${WRONG_URL}.*`],
  [
    "a password with a character that has a meaning in a URL",
    (password) => `postgres://usage:${password}#1@${NO_SERVER}`,
    2,
    "DATABASE_URL: expected postgres:.*; in the password, write %23 for #.*",
  ],
])("export refuses %s in one sentence", async ([name, urlOf, status, message], { context, skip }) => {
  // The tests may run on a server that asks for no password.
  const letsIn = name === "a wrong password" && runStatement(urlOf("wrong"), "select 1").then(Boolean, () => false);
  skip(await letsIn, "the given server lets everyone in without a password");
  const emulator = await context.setUp();
  const env = { DATABASE_URL: urlOf(context.newSecret()), LOG_LEVEL: "error" };
  const stderr = expect.stringMatching(new RegExp(`^usage-export: ${message}\n$`));
  expect(await context.run(["export"], env)).toMatchObject({ status, stdout: "", stderr });
  expect(emulator.requests).toEqual([]);
});

test("on an empty database, migrate applies every migration once", async ({ context }) => {
  await context.setUp();
  await using empty = await emptyDatabase();
  // Migrations bypass the connection pooler, if the tests use one.
  const env = { DATABASE_URL: empty.directUrl, LOG_LEVEL: "warn" };

  expect(await context.run(["check"], env)).toMatchObject({
    status: 1,
    stdout: expect.stringContaining("FAIL schema: the database is not up to date; run: usage-export migrate\n"),
  });
  expect(await context.run(["migrate"], env)).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^applied 0001_baseline\ncreated \d+ views and functions\n$/),
    stderr: "",
  });
  const again = { status: 0, stdout: "the database is up to date\n", stderr: "" };
  expect(await context.run(["migrate"], env)).toMatchObject(again);
});
