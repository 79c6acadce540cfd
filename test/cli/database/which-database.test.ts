// Every command says which database it uses, so that a forgotten DATABASE_URL is noticed.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { expect, vi } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { MAIN } from "../../support/program.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const test = programTest(database);

vi.setConfig({ testTimeout: 120_000 });

const EMBEDDED = { DATABASE_URL: undefined };

const COMMANDS = [["migrate"], ["export"], ["status"], ["dump", "--view", "coverage", "--format", "csv"]];

async function configureProgram(context: ProgramContext): Promise<void> {
  const { url } = await context.serve();
  // Port 0: the worker takes a free one.
  await context.configure({ ...smallConfig(url), monitor: { port: 0 } });
}

/** The log line that names the database. */
function databaseLineIn(stderr: string): unknown {
  const lines = stderr.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === "database");
}

test.for(COMMANDS)("%s says which server it uses, without the password", async (args, { context }) => {
  await configureProgram(context);
  const password = context.newSecret();
  const url = new URL(database.url);
  const { host, pathname, username } = url;
  url.password = password;
  const { stderr } = await context.run(args, { DATABASE_URL: url.href });
  expect(databaseLineIn(stderr)).toMatchObject({
    level: 30,
    database: `${username}@${host}${pathname}`,
    by: "DATABASE_URL",
  });
  expect(stderr).not.toContain(password);
});

test("without DATABASE_URL a command says that it uses the embedded database, and in which folder", async ({
  context,
}) => {
  await configureProgram(context);
  for (const args of [["migrate"], ["status"]]) {
    const { stderr } = await context.run(args, EMBEDDED);
    const folder = path.join(context.folder, "data");
    expect(databaseLineIn(stderr)).toMatchObject({ database: `embedded in ${folder}`, by: "DATABASE_URL is not set" });
  }
});

test("at a terminal the database is named in a line of plain text", async ({ context, skip }) => {
  skip(process.platform !== "linux", "needs util-linux's script");
  await configureProgram(context);
  const { stdout } = spawnSync("script", ["-qec", `${process.execPath} ${MAIN} status`, "/dev/null"], {
    cwd: context.folder,
    env: { PATH: process.env.PATH, DATABASE_URL: database.url },
    encoding: "utf8",
  });
  const { host, pathname, username } = new URL(database.url);
  expect(stdout).toContain(`database: ${username}@${host}${pathname} (DATABASE_URL)\r\n`);
});

test.for([...COMMANDS, ["start"], ["start", "--embedded"], ["check", "--offline"]])(
  "%s refuses an empty DATABASE_URL, and makes no database",
  async (args, { context }) => {
    await configureProgram(context);
    // Spaces count as empty; half of the commands get them, so that each command runs once.
    expect(await context.run(args, { DATABASE_URL: args.length > 1 ? "" : "  " })).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringMatching(
        /^usage-export: DATABASE_URL is empty: expected postgres:.* remove the variable to use/m,
      ),
    });
    expect(existsSync(path.join(context.folder, "data"))).toBe(false);
  },
);

test("a worker without DATABASE_URL and --embedded does not start", async ({ context }) => {
  await configureProgram(context);
  expect(await context.run(["start"], EMBEDDED)).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/^usage-export: DATABASE_URL is not set: expected postgres:.*--embedded/),
  });
  expect(await readdir(context.folder)).toEqual(["jobs.config.json"]);
});

test("with --embedded a worker works on the embedded database", async ({ context }) => {
  await configureProgram(context);
  await context.run(["migrate"], EMBEDDED);
  await using worker = context.start(["start", "--embedded"], EMBEDDED);
  await worker.waitFor("run finished");
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
});

test("--embedded together with DATABASE_URL is refused", async ({ context }) => {
  await configureProgram(context);
  expect(await context.run(["start", "--embedded"])).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/^usage-export: --embedded: DATABASE_URL is set/),
  });
});
