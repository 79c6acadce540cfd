// pg-boss sends texts of several statements, on connections of the pool that the rest of the program uses, too.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { onPool } from "../../../src/db/jobs/queue.ts";
import { testDatabase } from "../../support/database.ts";

const { db } = await testDatabase();
const queue = onPool(db);
await sql`create table public.note (text text)`.execute(db);

async function notes(): Promise<readonly unknown[]> {
  const { rows } = await sql<{ text: string }>`select text from public.note order by text`.execute(db);
  return rows.map(({ text }) => text);
}

test("a text from BEGIN to COMMIT is one transaction", async () => {
  await queue.executeSql(`
    begin;
    set local lock_timeout = '7s';
    select pg_advisory_xact_lock(1);
    insert into public.note values ('kept');
    insert into public.note select 'limit of ' || current_setting('lock_timeout');
    commit;
  `);
  expect(await notes()).toEqual(["kept", "limit of 7s"]);
});

test("if a statement of such a text fails, nothing is stored, and no connection is left in a transaction", async () => {
  const texts = Array.from({ length: 8 }, (_, i) =>
    queue.executeSql(`begin; insert into public.note values ('half ${i}'); select 1 / 0; commit`),
  );
  for (const { status } of await Promise.allSettled(texts)) expect(status).toBe("rejected");
  const ones = await Promise.all(Array.from({ length: 8 }, () => sql`select 1 as one`.execute(db)));
  expect(ones.map(({ rows }) => rows)).toEqual(ones.map(() => [{ one: 1 }]));
  expect(await notes()).not.toContainEqual(expect.stringContaining("half"));
});
