// What an older version queued, with one job for each request, is worked off after the upgrade.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { pino } from "pino";
import { expect } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { installQueue, openQueue } from "../../../src/db/jobs/queue.ts";
import { emptyDatabase, migrateTo } from "../../db/migrations/empty-database.ts";
import { lastDays } from "../numbers.ts";
import { PROJECT_ID, programTest } from "../program-context.ts";
import { breakdowns, coverage, runs, serveAndConfigure } from "../workers.ts";

const test = programTest();

const GROUPINGS = ["none", "endpoint", "method", "model"];
/** The last version with one queue job for each request. */
const OLDER = "0023_create_price_book";

test("jobs of single requests that wait, are given up, or were in the hands of a killed worker are handled after an upgrade", async ({
  context,
}) => {
  await using older = await emptyDatabase();
  await using db = openPostgres(older.directUrl);
  await migrateTo(db, OLDER);
  await installQueue(db);
  await queueSingleRequests(db);
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: GROUPINGS }] });
  const env = { DATABASE_URL: older.directUrl };

  expect(await context.run(["migrate"], env)).toMatchObject({ status: 0 });
  const worker = context.start(["start"], env);

  const olderRun = async () => (await runs(db)).find(({ trigger }) => trigger === "schedule");
  await expect.poll(olderRun).toMatchObject({ status: "failed", requests: 4, planned: 8, complete: 6, failed: 2 });
  expect(await coverage(db)).toEqual({ complete: 6, failed: 2 });
  expect(breakdowns(emulator)).toHaveLength(3);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
});

/** Two requests wait, one is claimed by a worker that has ended, and one is a dead letter. */
async function queueSingleRequests(db: Database): Promise<void> {
  const runId = randomUUID();
  await sql`
    insert into usage_export.run (run_id, kind, job, trigger, scheduled_for, status, requests_open, slices_planned)
    values (${runId}, 'export', 'nightly', 'schedule', now() - interval '1 day', 'running', 4, 8)
  `.execute(db);
  const queue = await openQueue(db, pino({ level: "silent" }));
  const window = lastDays(2);
  for (const [index, grouping] of GROUPINGS.entries()) {
    const { rows } = await sql<{ seriesId: number }>`
      insert into usage_export.series (project_id, project, "grouping", filter_key, filter, window_days)
      values (${PROJECT_ID}, 'production', ${grouping}, '{}', 'all', 2) returning series_id as "seriesId"
    `.execute(db);
    const { seriesId } = rows[0] ?? {};
    const data = {
      ...{
        runId,
        job: "nightly",
        seriesId,
        fetchNo: 1,
        runDay: window.end,
        emptyGuard: "confirm",
        checkFeatures: "error",
      },
      ...{ project: { id: PROJECT_ID, name: "production" }, grouping, window },
      filter: { name: "all", features: {}, dimensions: {} },
    };
    const job = { key: `${seriesId} ${window.start} ${window.end}`, priority: 0, data };
    const name = index === 3 ? "usage_request_dead" : "usage_request";
    await inTransaction(db, (tx) => queue.add(tx, name, [job]));
    if (index === 0) await queue.claim(name, 1);
  }
  await queue.stop();
}
