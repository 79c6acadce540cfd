// What a worker does with a queue job that is of no project of its configuration or was delivered twice, and how it starts and stops.

import { randomUUID } from "node:crypto";
import path from "node:path";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { insertQueuedRun } from "../../src/db/jobs/runs.ts";
import { openRunWriter } from "../../src/db/usage/writer.ts";
import { openExportContext } from "../../src/jobs/context.ts";
import { retryUntilReached, type WorkerContext } from "../../src/worker/context.ts";
import { handleProject } from "../../src/worker/handle-project.ts";
import { openLiveness } from "../../src/worker/liveness.ts";
import { rotationTest } from "../cli/rotation/rotation-context.ts";
import { PROJECT_ID } from "../cli/small-config.ts";
import { testDatabase } from "../support/database.ts";
import { silentApp } from "../support/silent-app.ts";

const { db } = await testDatabase();
const rotationCase = await rotationTest();

test("a rotation that a worker does not know is left to one that does, and fails only after all tries", async () => {
  const [runId, projectId] = [randomUUID(), "p"];
  const planned = { runId, kind: "rotation", job: "exporter", trigger: "schedule" } as const;
  await inTransaction(db, (tx) => insertQueuedRun(tx, planned, [{ projectId, planned: 0 }]));
  const app = { log: pino({ level: "silent" }), scrubber: { scrub: (text: string) => text } };
  const config = { exports: [], rotations: [] };
  const service = { forgetRefusals() {} };
  const context = { app, db, config, service, writer: openRunWriter(db) } as unknown as WorkerContext;
  const { signal } = new AbortController();
  const deps = { stopping: signal, knownRuns: new Set<string>() };
  const handle = (retryCount: number) =>
    handleProject(context, deps, { data: { runId, projectId }, retryCount, retryLimit: 7, signal });
  const run = async () =>
    (await sql<object>`select status, error from bi.runs where run_id = ${runId}`.execute(db)).rows[0];
  const error = "project p of rotation exporter is not in the configuration of the worker that has it";

  await expect(handle(6)).rejects.toThrow(error);
  expect(await run()).toEqual({ status: "running", error: null });
  await handle(7);
  expect(await run()).toEqual({ status: "failed", error });
});

rotationCase("a rotation that was delivered twice and fails sends one create", async ({ context: lab }) => {
  lab.emulator.fault = ({ method }) => (method === "POST" ? { kind: "answer", status: 400, body: "{}" } : undefined);
  const config = await loadConfig(path.join(lab.folder, "jobs.config.json"));
  const app = silentApp({ env: { USAGE_EXPORT_KEY: lab.key, USAGE_EXPORT_MASTER_KEY: lab.masterKey } });
  await using opened = await openExportContext(app, config, lab.db);
  const context = opened as unknown as WorkerContext;
  const [runId, projectId] = [randomUUID(), PROJECT_ID];
  const planned = { runId, kind: "rotation", job: "exporter", trigger: "schedule" } as const;
  await inTransaction(lab.db, (tx) => insertQueuedRun(tx, planned, [{ projectId, planned: 0 }]));
  const { signal } = app;
  const deps = { stopping: signal, knownRuns: new Set<string>() };
  const claimed = { data: { runId, projectId }, retryCount: 0, retryLimit: 7, signal };
  await Promise.all([handleProject(context, deps, claimed), handleProject(context, deps, claimed)]);
  expect(lab.emulator.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
});

const app = silentApp({ env: { DATABASE_URL: "postgres://127.0.0.1/usage" } });

/** Returns after how many attempts opening succeeded, if the database answers the first one with this error code. */
async function attemptsAfter(code: string): Promise<number> {
  let attempts = 0;
  const liveness = openLiveness(app.log, () => 0);
  return retryUntilReached(app, liveness, async () => {
    attempts++;
    if (attempts === 1) throw Object.assign(new Error("a fault of the test"), { code });
    return attempts;
  });
}

test("if the database can't be reached while the worker starts, the worker tries again", async () => {
  expect(await attemptsAfter("ECONNREFUSED")).toBe(2);
});

test("if the database refuses access while the worker starts, the worker does not try again", async () => {
  await expect(attemptsAfter("28P01")).rejects.toThrow("a fault of the test");
});
