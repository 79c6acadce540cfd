import { sql } from "kysely";
import { expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { installQueue } from "../../../src/db/jobs/queue.ts";
import { PASS } from "../../faults/fault-decision.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { emptyDatabase } from "../connection/empty-database.ts";

/** A database with the schema of the queue, as the migration leaves it. */
async function databaseWithSchema() {
  const empty = await emptyDatabase();
  await runStatement(empty.directUrl, "create schema usage_export_queue");
  return empty;
}

test("processes that install at the same time all succeed", async () => {
  await using empty = await databaseWithSchema();
  await using db = openPostgres(empty.url);
  await Promise.all([installQueue(db), installQueue(db), installQueue(db)]);
  expect((await sql`select name from usage_export_queue.queue`.execute(db)).rows).toHaveLength(2);
});

test("a connection that is lost in the queue's background work fails the installation, and the next one succeeds", async () => {
  await using empty = await databaseWithSchema();
  let isCut = false;
  await using front = await startPostgresFront(empty.directUrl, {
    who: "test",
    decideFault: ({ name, side }) => {
      if (isCut || side === "out" || !name.includes("bam_on")) return PASS;
      isCut = true;
      return { kind: "cut" };
    },
  });
  await using db = openPostgres(front.url);

  await expect(installQueue(db)).rejects.toThrow(/^Connection terminated|^Client has encountered a connection error/);

  expect(isCut).toBe(true);
  await installQueue(db);
});
