// What is kept of each request of a run, and for how long.

import { sql } from "kysely";
import { expect } from "vitest";
import { readRequests } from "../../../src/db/jobs/run-requests.ts";
import { deleteOldRuns } from "../../../src/db/jobs/runs.ts";
import { testDatabase } from "../../support/database.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { serveAndConfigure, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const JOB = { name: "nightly", window: { days: 2 }, groupings: ["none", "model", "tags"] };

/** The service refuses usage by tags, and its answer quotes the key. */
async function serve(context: ProgramContext): Promise<void> {
  const emulator = await serveAndConfigure(context, { exports: [JOB] });
  emulator.fault = ({ path }) =>
    path.includes("tags") ? { kind: "answer", status: 400, body: `no tags for ${context.key}` } : undefined;
}

const GOOD = { days: 1, outcome: "complete", code: null, isTimed: true, hasRows: true, isOfRun: true, error: null };

test.for(["export", "start"])(
  "each request of a run of `%s` is kept with its outcome and how long it took",
  async (command, { context }) => {
    await serve(context);
    if (command === "start") await workOnce(context, db);
    else await context.run([command]);

    const { rows } = await sql`
      select "grouping", to_date - from_date as days, outcome, error_code as code, took_ms between 0 and 60000 as "isTimed",
        q.rows_changed > 0 as "hasRows",
        ended_at between started_at and finished_at + interval '1 second' as "isOfRun", q.error
      from bi.run_requests q join bi.runs r using (run_id) order by "grouping"
    `.execute(db);
    expect(rows).toEqual([
      { grouping: "model", ...GOOD },
      { grouping: "none", ...GOOD },
      {
        ...{ grouping: "tags", ...GOOD, outcome: "failed", code: "rejected", hasRows: false },
        error: expect.stringContaining("the service answered 400"),
      },
    ]);
    const [run] = (
      await sql`select requests, rows_changed::integer as rows, slices_failed as failed from bi.runs`.execute(db)
    ).rows;
    const { rows: sums } = await sql`
      select count(*)::integer as requests, sum(rows_changed)::integer as rows,
        (sum(to_date - from_date + 1) filter (where outcome = 'failed'))::integer as failed
      from bi.run_requests
    `.execute(db);
    expect(sums).toEqual([run]);
    const { rows: ids } = await sql<{ id: string }>`select run_id as id from bi.runs`.execute(db);
    const beyond = { outcome: undefined, project: undefined, page: 9 };
    expect(await readRequests(db, ids[0]?.id ?? "", beyond)).toMatchObject({ found: 3, requests: [{}, {}, {}] });
  },
);

test("the requests of a run are deleted 14 days after it started, and earlier if runs are", async ({ context }) => {
  await serve(context);
  await context.run(["export"]);
  const kept = async () => (await sql`select from bi.run_requests`.execute(db)).rows.length;
  const age = (days: number) =>
    sql`
      update usage_export.run set started_at = now() - make_interval(days => ${days}), heartbeat_at = now() - make_interval(days => ${days})
    `.execute(db);
  await age(13);
  await deleteOldRuns(db, 400, new Date());
  expect(await kept()).toBe(3);
  await deleteOldRuns(db, 10, new Date());
  expect(await kept()).toBe(0);
  expect((await sql`select from bi.runs`.execute(db)).rows).toHaveLength(1);

  await context.run(["export"]);
  await age(15);
  await deleteOldRuns(db, 400, new Date());
  expect(await kept()).toBe(0);
});
