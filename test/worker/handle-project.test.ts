// What a worker does with a project of a run that is not in its configuration.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { insertQueuedRun } from "../../src/db/jobs/runs.ts";
import { openRunWriter } from "../../src/db/usage/writer.ts";
import type { WorkerContext } from "../../src/worker/context.ts";
import { handleProject } from "../../src/worker/handle-project.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

test("a rotation that a worker does not know is left to one that does, and fails only after all tries", async () => {
  const [runId, projectId] = [randomUUID(), "p"];
  const planned = { runId, kind: "rotation", job: "exporter", trigger: "schedule" } as const;
  await inTransaction(db, (tx) => insertQueuedRun(tx, planned, [{ projectId, planned: 0 }]));
  const app = { log: pino({ level: "silent" }), scrubber: { scrub: (text: string) => text } };
  const config = { exports: [], rotations: [] };
  const service = { forgetAuthFailures() {} };
  const context = { app, db, config, service, writer: openRunWriter(db) } as unknown as WorkerContext;
  const { signal } = new AbortController();
  let asked = 0;
  const deps = { stopping: signal, onUnknownProject: () => asked++, isNewRun: () => true };
  const handle = (retryCount: number) =>
    handleProject(context, deps, { data: { runId, projectId }, retryCount, retryLimit: 7, signal });
  const run = async () =>
    (await sql<object>`select status, error from bi.runs where run_id = ${runId}`.execute(db)).rows[0];
  const error = "project p of rotation exporter is not in the configuration of the worker that has it";

  await expect(handle(6)).rejects.toThrow(error);
  expect([asked, await run()]).toEqual([1, { status: "running", error: null }]);
  await handle(7);
  expect(await run()).toEqual({ status: "failed", error });
});
