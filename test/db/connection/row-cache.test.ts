// The cache of rows by itself. test/web/usage-site.ts tests the pages and the read API with it.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { openRowCache, queryAtOneMoment, type RowCache } from "../../../src/db/connection/transaction.ts";
import { testDatabase } from "../../support/database.ts";
import { newSeries } from "../stored-usage.ts";

const { db, read } = await testDatabase();

/** A statement whose row has the time at which it was run. */
const STATEMENT = "select clock_timestamp()::text as at from pg_sleep(0.05)";

async function readAt(cache: RowCache, statement = STATEMENT): Promise<string | undefined> {
  const rows = await queryAtOneMoment(db, (query) => query<{ at: string }>(statement), { cache });
  return rows[0]?.at;
}

test("every table behind the views that questions read records its changes", async () => {
  const unrecorded = sql<{ name: string }>`
    with recursive behind (oid) as (
      select oid from pg_class where relkind = 'v' and relnamespace in ('bi'::regnamespace, 'usage_export'::regnamespace)
        and relname ~ '^(usage_(by|total|filtered)|cost_|coverage$|series|price_book|listed_keys|line_items|api_keys|unpriced_usage)'
      union
      select refobjid from behind join pg_rewrite r on ev_class = behind.oid join pg_depend d on objid = r.oid
      where refclassid = 'pg_class'::regclass
    )
    select relname as name from behind join pg_class c using (oid)
    where relkind = 'r' and not exists (select from pg_trigger where tgrelid = c.oid and tgname = 'record_change')
  `;
  expect(await read(unrecorded)).toEqual([]);
});

test("the next read of each process sees every commit, even of a transaction that began before the rows were cached", async () => {
  const replicas = [openRowCache(), openRowCache()];
  const [written, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const early = db.transaction().execute(async (tx) => {
    await sql`insert into usage_export.line_item values ('early', 'A')`.execute(tx);
    written.resolve();
    await commit.promise;
  });
  await written.promise;
  const seen: (string | undefined)[][] = [];
  const commitEarly = async () => {
    commit.resolve();
    await early;
  };
  for (const change of [() => newSeries(db), commitEarly]) {
    await change();
    seen.push(await Promise.all(replicas.map((cache) => readAt(cache))));
    expect(await Promise.all(replicas.map((cache) => readAt(cache)))).toEqual(seen.at(-1));
  }
  expect(new Set(seen.flat()).size).toBe(4); // Both replicas read after both changes.
});

test("rows are cached until the next day of a series is due", async () => {
  const cache = openRowCache();
  await newSeries(db);
  await sql`update usage_export.series set next_due_at = now() + interval '4 s'`.execute(db);
  const before = await readAt(cache);
  await expect.poll(() => readAt(cache)).not.toBe(before);
  expect(await readAt(cache)).toBe(await readAt(cache));
});

test("readers who ask the same at once share one statement", async () => {
  const cache = openRowCache();
  await readAt(cache, "select");
  expect(new Set(await Promise.all([readAt(cache), readAt(cache), readAt(cache)])).size).toBe(1);
  await sql`create table public.answer (at text)`.execute(db);
  const failing = "select (1 / count(*))::text as at from public.answer";
  await expect(readAt(cache, failing)).rejects.toThrow("division by zero");
  await sql`insert into public.answer values ('now')`.execute(db);
  expect(await readAt(cache, failing)).toBe("1");
});
