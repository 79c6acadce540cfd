// A worker takes up projects that appear and vanish while it runs.

import { sql } from "kysely";
import { expect } from "vitest";
import type { UsageRecord } from "../../../src/emulator/usage.ts";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const USAGE: readonly UsageRecord[] = [
  { accessor: "key-a", model: ["nova-3"], method: "sync", requests: 5, tags: null },
];

/** By the name of a project, how many of its days are complete. */
async function completeDays() {
  const { rows } = await sql<{ project: string; days: number }>`
    select project, count(*) filter (where status = 'complete')::integer as days from bi.coverage group by 1 order by 1
  `.execute(db);
  return Object.fromEntries(rows.map(({ project, days }) => [project, days]));
}

async function dueProjects() {
  const { rows } = await sql<{
    project: string;
  }>`select distinct project from usage_export.due_series order by 1`.execute(db);
  return rows.map(({ project }) => project);
}

/** A list that was read a moment ago is not read again. */
async function makeListOld(): Promise<void> {
  await sql`update usage_export.project_list set read_at = read_at - interval '6 minutes'`.execute(db);
}

test("a worker lists the projects when an export is due, and goes on with those that it finds", async ({ context }) => {
  const names = new Map([
    ["a", "alpha"],
    ["b", "beta"],
  ]);
  const secret = context.newSecret();
  const emulator = await context.serve({
    usage: () => USAGE,
    projects: () => [...names].map(([id, name]) => ({ id, name })),
    consoleKeys: [{ secret, projectId: "a", scopes: ["member"], isAccountKey: true }],
  });
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" }, backfill: 4 }];
  const exports = [{ projects: ["*"], schedule: "*/3 * * * * *" }];
  await context.configure({ ...smallConfig(emulator.url, { projects, exports }), monitor: { port: 0 } });
  const worker = context.start(["start"], { ACCOUNT_KEY: secret, USAGE_EXPORT_KEY: undefined, LOG_LEVEL: "debug" });

  // Two days of the window, and two more before the first one of a new project.
  await expect.poll(completeDays).toEqual({ alpha: 4, beta: 4 });
  await worker.waitFor("tick finished");
  names.delete("b");
  names.set("c", "gamma").set("a", "renamed");
  await makeListOld();

  await expect.poll(completeDays).toEqual({ renamed: 4, beta: 4, gamma: 4 });
  expect(await dueProjects()).toEqual(["gamma", "renamed"]);
  const { rows } = await sql`select count(*)::integer as workers from usage_export.worker`.execute(db);
  expect(rows).toEqual([{ workers: 1 }]);
  worker.kill("SIGTERM");
  const { status, stdout, stderr } = await worker.ended;
  expect(status).toBe(0);
  expect(stdout + stderr).toContain("the configuration has changed and is taken up");
});
