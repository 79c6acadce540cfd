// Two workers with different configurations on one database: each does its own work, and neither drains, retires or alarms about the
// other's.

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { PROJECT_ID, type ProgramContext, programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";
import { farSchedule, runs, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const STAGING = { id: "project-2", name: "staging", key: { env: "STAGING_KEY" } };

/** Both have a job of the same name. */
async function writeConfigs(context: ProgramContext) {
  const stagingKey = context.newSecret();
  const emulator = await context.serve({
    consoleKeys: [{ secret: stagingKey, projectId: STAGING.id, scopes: ["member"] }],
  });
  const write = (file: string, installation: string, projects: readonly object[], groupings: readonly string[]) => {
    const exports = [{ schedule: farSchedule(), projects: projects.map((one) => Object(one).name), groupings }];
    const config = {
      ...smallConfig(emulator.url, { projects: projects as never, exports }),
      monitor: { port: 0 },
      installation,
    };
    return writeFile(path.join(context.folder, file), JSON.stringify(config));
  };
  await write("a.json", "team-a", [PRODUCTION], ["none"]);
  await write("b.json", "team-b", [PRODUCTION, STAGING], ["none", "endpoint"]);
  const env = { STAGING_KEY: stagingKey };
  const status = async (file: string) => {
    const { stdout } = await context.run(["status", "--json", "--config", file], env);
    return JSON.parse(stdout);
  };
  return { emulator, env, status };
}

test("each worker does its own work, whoever starts last, and a project that both export is counted once", async ({
  context,
}) => {
  const { emulator, env, status } = await writeConfigs(context);
  const [a, b] = ["a.json", "b.json"].map((file) => context.start(["start", "--config", file], env));
  const ended = await waitForRuns(db, 2);
  expect(ended.map(({ job, status, failed }) => [job, status, failed])).toEqual([
    ["nightly", "ok", 0],
    ["nightly", "ok", 0],
  ]);
  expect(ended.map(({ planned }) => planned).sort()).toEqual([2, 8]);
  const { rows: installations } = await sql`
    select project, "grouping", installations, count(*)::integer as days from bi.coverage group by 1, 2, 3 order by 1, 2
  `.execute(db);
  expect(installations).toEqual([
    { project: "production", grouping: "endpoint", installations: "team-b", days: 2 },
    { project: "production", grouping: "none", installations: "team-a, team-b", days: 2 },
    { project: "staging", grouping: "endpoint", installations: "team-b", days: 2 },
    { project: "staging", grouping: "none", installations: "team-b", days: 2 },
  ]);
  const { rows: total } =
    await sql`select count(*)::integer as rows from bi.usage_total where project_id = ${PROJECT_ID}`.execute(db);
  expect(total).toEqual([{ rows: 2 }]);
  expect(await status("a.json")).toMatchObject({ alerts: [], slices: { complete: 2 }, workers: [{ pid: a?.pid }] });
  expect(await status("b.json")).toMatchObject({ alerts: [], slices: { complete: 8 }, workers: [{ pid: b?.pid }] });

  // One that is killed with work in its queue is an alert of its own installation alone, and its work stays its own.
  a?.kill("SIGKILL");
  await a?.ended;
  await sql`update usage_export.worker set last_seen_at = now() - interval '1 hour' where installation = 'team-a'`.execute(
    db,
  );
  await sql`delete from usage_export.slice where series_id in (
    select series_id from usage_export.series where project = 'staging' and "grouping" = 'none'
  )`.execute(db);
  expect((await status("a.json")).alerts).toEqual([expect.stringContaining("no worker runs")]);
  const before = await runs(db);
  const restarted = context.start(["start", "--config", "a.json"], env);
  await restarted.waitFor("worker started");
  // The worker of team-b reads the day again at its next tick; that of team-a, which ticks at its start, leaves it alone.
  await expect.poll(async () => (await status("a.json")).alerts).toEqual([]);
  b?.kill("SIGTERM");
  expect(await b?.ended).toMatchObject({ status: 0 });
  const again = context.start(["start", "--config", "b.json"], env);
  await expect.poll(async () => (await status("b.json")).slices).toMatchObject({ complete: 8, missing: 0 });
  expect((await runs(db)).length).toBe(before.length + 1);
  expect((await status("b.json")).workers).toEqual(
    expect.arrayContaining([expect.objectContaining({ state: "live", pid: again.pid })]),
  );
  expect(emulator.requests.length).toBeGreaterThan(0);
});

test("a configuration without installation is the default one, and goes on with what was there before", async ({
  context,
}) => {
  const { env, status } = await writeConfigs(context);
  const { installation: _, ...unnamed } = JSON.parse(await readFile(path.join(context.folder, "a.json"), "utf8"));
  await context.configure(unnamed);
  expect(await context.run(["export"], env)).toMatchObject({ status: 0 });
  expect(await context.run(["export", "--config", "b.json"], env)).toMatchObject({ status: 0 });
  expect(await status("jobs.config.json")).toMatchObject({ slices: { complete: 2, missing: 0 } });
  const { rows } = await sql`
    select installation, job, slices_complete as complete from bi.runs order by installation
  `.execute(db);
  expect(rows).toEqual([
    { installation: "default", job: "nightly", complete: 2 },
    { installation: "team-b", job: "nightly", complete: 8 },
  ]);
});
