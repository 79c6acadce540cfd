// What a worker does with a queued rotation that is not in its configuration.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { openQueue } from "../../src/db/jobs/queue.ts";
import { insertRun } from "../../src/db/jobs/runs.ts";
import type { WorkerContext } from "../../src/worker/context.ts";
import { handleRotation } from "../../src/worker/rotation.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const log = pino({ level: "silent" });

test("a rotation that a worker does not know is left to one that does, and fails only after all tries", async () => {
  const queue = await openQueue(db, log);
  const runId = randomUUID();
  const data = { runId, job: "exporter", trigger: "schedule" };
  await inTransaction(db, async (tx) => {
    await insertRun(tx, { runId, kind: "rotation", job: "exporter", trigger: "schedule" });
    await queue.add(tx, "rotation", [{ key: "exporter", priority: 0, data }]);
  });
  const context = { app: { log }, db, queue, config: { rotations: [] } } as unknown as WorkerContext;
  let asked = 0;
  const handleNext = async () => {
    const [claimed] = await queue.claim("rotation", 1);
    if (!claimed) throw new Error("no rotation is in the queue");
    await handleRotation(context, claimed, () => asked++);
  };
  const run = async () =>
    (await sql<object>`select status, error from bi.runs where run_id = ${runId}`.execute(db)).rows[0];
  try {
    for (let attempt = 1; attempt <= 6; attempt++) {
      await handleNext();
      expect([asked, await run()]).toEqual([attempt, { status: "running", error: null }]);
      await sql`update usage_export_queue.job set start_after = now() where name = 'rotation'`.execute(db);
    }
    await handleNext();
    expect(await run()).toEqual({
      status: "failed",
      error: 'no rotation "exporter" is configured any more',
    });
    expect(await queue.claim("rotation", 1)).toEqual([]);
  } finally {
    await queue.stop();
  }
});
