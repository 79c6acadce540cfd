import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { readSnapshot } from "../../../src/db/connection/transaction.ts";
import { lastOutcomes } from "../../../src/db/health.ts";
import { testDatabase } from "../../support/database.ts";

const { db } = await testDatabase();

/** The last outcome of a new job with these runs, of which the oldest comes first. */
async function lastOf(...runs: readonly [trigger: string, status: string][]) {
  const job = { kind: "export", name: `job-${randomUUID()}`, hasNoFailedSlice: true } as const;
  for (const [i, [trigger, status]] of runs.entries()) {
    await sql`
      with run as (
        insert into usage_export.run (run_id, kind, job, trigger, status, started_at, error)
        values (${randomUUID()}, 'export', ${job.name}, ${trigger}, ${status}, now() + make_interval(secs => ${i}), 'no') returning run_id
      )
      insert into usage_export.run_project (run_id, project_id, slices_planned, slices_failed) select run_id, 'p', 4, ${i} from run
    `.execute(db);
  }
  const [outcome] = await readSnapshot(db, (tx) => lastOutcomes(tx, [job]));
  return outcome;
}

test("a job that never ran has no last outcome", async () => {
  expect(await lastOf()).toBeUndefined();
});

test("the newest run is the last outcome, with its numbers and its error", async () => {
  expect(await lastOf(["schedule", "ok"], ["manual", "failed"])).toEqual({
    ...{ kind: "export", name: expect.any(String) },
    ...{ status: "failed", trigger: "manual", planned: 4, suspect: 0, failed: 1, error: "no" },
    startedAt: expect.any(Date),
  });
});

test.each([
  ["a failed backfill", "backfill", "failed"],
  ["a failed run that only filled gaps", "catchup", "failed"],
  ["a stopped run", "schedule", "stopped"],
  ["a skipped run", "schedule", "skipped"],
  ["a run that has not ended", "manual", "running"],
])("%s is not the last outcome of its job", async (_, trigger, status) => {
  expect(await lastOf(["manual", "ok"], [trigger, status])).toMatchObject({ trigger: "manual", status: "ok" });
});
