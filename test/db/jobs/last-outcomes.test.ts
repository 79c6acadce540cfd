import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { readSnapshot } from "../../../src/db/connection/transaction.ts";
import { lastOutcomes } from "../../../src/db/health.ts";
import { testDatabase } from "../../support/database.ts";

const { db } = await testDatabase();

/** The runs of a job of its own, the oldest first. */
async function lastOf(...runs: readonly [trigger: string, status: string][]) {
  const job = { kind: "export", name: `job-${randomUUID()}`, hasNoFailedSlice: true } as const;
  for (const [i, [trigger, status]] of runs.entries()) {
    await sql`
      insert into usage_export.run (run_id, kind, job, trigger, status, started_at, slices_planned, slices_failed, error)
      values (${randomUUID()}, 'export', ${job.name}, ${trigger}, ${status}, now() + make_interval(secs => ${i}), 4, ${i}, 'no')
    `.execute(db);
  }
  const [outcome] = await readSnapshot(db, (tx) => lastOutcomes(tx, [job]));
  return outcome;
}

test("a job that never ran has none", async () => {
  expect(await lastOf()).toBeUndefined();
});

test("the newest counts, with its numbers and its error", async () => {
  expect(await lastOf(["schedule", "ok"], ["manual", "failed"])).toEqual({
    ...{ kind: "export", name: expect.any(String) },
    ...{ status: "failed", trigger: "manual", planned: 4, suspect: 0, failed: 1, error: "no" },
    startedAt: expect.any(Date),
  });
});

test.each([
  ["a backfill that failed", "backfill", "failed"],
  ["one that only filled gaps and failed", "catchup", "failed"],
  ["one that was stopped", "schedule", "stopped"],
  ["one that was skipped", "schedule", "skipped"],
  ["one that is under way", "manual", "running"],
])("%s says nothing of the job", async (_, trigger, status) => {
  expect(await lastOf(["manual", "ok"], [trigger, status])).toMatchObject({ trigger: "manual", status: "ok" });
});
