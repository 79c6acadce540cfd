// What a worker does with a queued rotation that is not in its configuration.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { insertRun } from "../../src/db/jobs/runs.ts";
import type { WorkerContext } from "../../src/worker/context.ts";
import { handleRotation } from "../../src/worker/rotation.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const log = pino({ level: "silent" });

test("a rotation that a worker does not know is left to one that does, and fails only after all tries", async () => {
  const runId = randomUUID();
  const data = { runId, job: "exporter", trigger: "schedule" };
  await inTransaction(db, (tx) => insertRun(tx, { runId, kind: "rotation", job: "exporter", trigger: "schedule" }));
  const context = { app: { log }, db, config: { rotations: [] } } as unknown as WorkerContext;
  let asked = 0;
  const handle = (retryCount: number) =>
    handleRotation(context, { data, retryCount, retryLimit: 7, signal: new AbortController().signal }, () => asked++);
  const run = async () =>
    (await sql<object>`select status, error from bi.runs where run_id = ${runId}`.execute(db)).rows[0];
  for (let attempt = 0; attempt < 6; attempt++) {
    await expect(handle(attempt)).rejects.toThrow("is in the configuration of this worker");
    expect([asked, await run()]).toEqual([attempt + 1, { status: "running", error: null }]);
  }
  await handle(6);
  expect(await run()).toEqual({ status: "failed", error: 'no rotation "exporter" is configured any more' });
});
