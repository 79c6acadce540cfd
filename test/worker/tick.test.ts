// Which runs a worker starts at a tick.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { openQueue } from "../../src/db/jobs/queue.ts";
import { endProjects } from "../../src/db/jobs/runs.ts";
import { registerSeries } from "../../src/db/usage/stored-series.ts";
import { NO_COUNTS } from "../../src/usage/counts.ts";
import { configuredSeries } from "../../src/usage/plan.ts";
import type { WorkerContext } from "../../src/worker/context.ts";
import { tick } from "../../src/worker/tick.ts";
import { farSchedule, smallConfig } from "../cli/small-config.ts";
import { parse } from "../config/sample-config.ts";
import { testDatabase } from "../support/database.ts";
import { silentApp } from "../support/silent-app.ts";

const { db } = await testDatabase();

/** A worker with these projects, an export and a rotation of all of them. */
async function workerWith(name: string, ids: readonly string[]): Promise<WorkerContext> {
  const app = silentApp();
  const projects = ids.map((id) => ({ id, name: id, key: { env: "KEY" } }));
  const job = { name, schedule: farSchedule(), projects: ["*"] };
  const written = smallConfig("https://api.example.com", { projects, exports: [job] });
  const rotation = { ...job, name: `${name}-keys`, comment: "c", scopes: ["keys:write"] };
  const config = parse({ ...written, rotations: [rotation] });
  const seriesIds = await registerSeries(db, configuredSeries(config.exports));
  return { app, db, config, ids: seriesIds, queue: await openQueue(db, app.log) } as unknown as WorkerContext;
}

/** The runs of a job, the oldest first, each with its projects. */
async function projectsOfRuns(job: string): Promise<readonly string[]> {
  const { rows } = await sql<{ projects: string }>`
    select string_agg(project_id, ' ' order by project_id) as projects from usage_export.run join usage_export.run_project using (run_id)
    where job = ${job} group by run_id order by min(started_at)
  `.execute(db);
  return rows.map(({ projects }) => projects);
}

test("a new project gets its first key while another project of the rotation is still at work", async () => {
  await tick(await workerWith("slow", ["a"]));
  const withBoth = await workerWith("slow", ["a", "b"]);
  expect(await tick(withBoth)).toBe(true);
  expect(await tick(withBoth)).toBe(false);
  expect(await projectsOfRuns("slow-keys")).toEqual(["a", "b"]);
});

test("a project that no worker knows is started again after an hour, not at once", async () => {
  const context = await workerWith("newer", ["a"]);
  await tick(context);
  const { rows } = await sql<{
    runId: string;
  }>`select run_id as "runId" from usage_export.run where job like 'newer%'`.execute(db);
  await endProjects(
    db,
    rows.map(({ runId }) => ({ runId, projectId: "a", counts: NO_COUNTS, error: "it is not in the configuration" })),
  );
  expect(await tick(context)).toBe(false);
  await sql`update usage_export.run set started_at = started_at - interval '1 hour' where job like 'newer%'`.execute(
    db,
  );
  expect(await tick(context)).toBe(true);
  for (const job of ["newer", "newer-keys"]) expect(await projectsOfRuns(job)).toEqual(["a", "a"]);
});

test("a scheduled run waits for the end of a run that was late", async () => {
  const app = silentApp();
  const config = parse(smallConfig("https://api.example.com", { exports: [{ schedule: farSchedule() }] }));
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const context = { app, db, config, ids, queue: await openQueue(db, app.log) } as unknown as WorkerContext;
  const runs = async () => {
    const { rows } = await sql<{ trigger: string }>`select trigger from bi.runs where job = 'nightly'`.execute(db);
    return rows.map(({ trigger }) => trigger);
  };
  expect(await tick(context)).toBe(true);
  expect(await runs()).toEqual(["catchup"]);
  // As if that run were of the day before, and its time came again.
  await sql`update usage_export.run set scheduled_for = scheduled_for - interval '1 day'`.execute(db);
  await sql`update usage_export.job set scheduled_through = scheduled_through - interval '1 day'`.execute(db);
  expect(await tick(context)).toBe(false);
  await sql`update usage_export.run set status = 'ok', finished_at = now()`.execute(db);
  expect(await tick(context)).toBe(true);
  expect(await runs()).toHaveLength(2);
});
