// A worker takes up projects that appear and vanish while it runs.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { completeDays, dueProjects, FIVE_REQUESTS, listedIn, makeListOld } from "../account.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

/** A service with two projects, and a configuration that discovers them. */
async function openAccount(context: ProgramContext, schedule: string) {
  const names = new Map([
    ["a", "alpha"],
    ["b", "beta"],
  ]);
  const secret = context.newSecret();
  const emulator = await context.serve({
    usage: () => FIVE_REQUESTS,
    projects: () => listedIn(names),
    consoleKeys: [{ secret, projectId: "a", scopes: ["member"], isAccountKey: true }],
  });
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" }, backfill: 4 }];
  const exports = [{ projects: ["*"], schedule }];
  await context.configure({ ...smallConfig(emulator.url, { projects, exports }), monitor: { port: 0 } });
  return { names, emulator, env: { ACCOUNT_KEY: secret, USAGE_EXPORT_KEY: undefined, LOG_LEVEL: "debug" } };
}

test("a worker lists the projects every hour, and goes on with those that it finds", async ({ context }) => {
  const { names, env } = await openAccount(context, "*/3 * * * * *");
  const worker = context.start(["start"], env);

  // Two days of the window, and two more before the first one of a new project.
  await expect.poll(() => completeDays(db)).toEqual({ alpha: 4, beta: 4 });
  await worker.waitFor("tick finished");
  names.delete("b");
  names.set("c", "gamma").set("a", "renamed");
  await makeListOld(db);

  await expect.poll(() => completeDays(db)).toEqual({ renamed: 4, beta: 4, gamma: 4 });
  expect(await dueProjects(db)).toEqual(["gamma", "renamed"]);
  const { rows } = await sql`select count(*)::integer as workers from usage_export.worker`.execute(db);
  expect(rows).toEqual([{ workers: 1 }]);
  worker.kill("SIGTERM");
  const { status, stdout, stderr } = await worker.ended;
  expect(status).toBe(0);
  expect(stdout + stderr).toContain("the configuration has changed and is taken up");
});
