import { sql } from "kysely";
import { expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { installQueue } from "../../../src/db/jobs/queue.ts";
import { PASS } from "../../faults/fault-decision.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { emptyDatabase } from "../connection/empty-database.ts";

/** Makes the server refuse the first `count` attempts to create a schema, as if another process had just created it. */
async function refuseSchemas(url: string, count: number, code: string): Promise<void> {
  await runStatement(
    url,
    `create sequence public.attempt;
     create function public.refuse() returns event_trigger language plpgsql as $$
       begin
         if nextval('public.attempt') <= ${count} then raise exception 'made up' using errcode = '${code}'; end if;
       end
     $$;
     create event trigger refuse on ddl_command_start when tag in ('CREATE SCHEMA') execute function public.refuse()`,
  );
}

test("a process that installs at the same time as another one succeeds", async () => {
  await using empty = await emptyDatabase();
  await refuseSchemas(empty.directUrl, 1, "23505");
  await using db = openPostgres(empty.url);
  await installQueue(db);
  expect((await sql`select name from usage_export_queue.queue`.execute(db)).rows).toHaveLength(2);
});

test("a connection that is lost in the queue's background work fails the installation, and the next one succeeds", async () => {
  await using empty = await emptyDatabase();
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
