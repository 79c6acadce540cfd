// Unchanged slices are updated without having been locked, in no fixed order. So two transactions may deadlock.

import { sql } from "kysely";
import { afterAll, expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { newSeries, shown, slice, store } from "../stored-usage.ts";

const { db, url } = await testDatabase();
// After this time Postgres ends a transaction that waits in a deadlock.
await runStatement(url, `alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '300ms'`);
const other = openPostgres(url);
afterAll(() => other.destroy());

test("unchanged slices are written in the end, although a deadlock ended the first transaction", async () => {
  const { project, seriesId } = await newSeries(db);
  const both = [slice("2026-03-16", { listen: "1" }), slice("2026-03-17", { listen: "2" })];
  await store(db, seriesId, both);
  const update = (day: string) => sql`
    update usage_export.slice set fetched_at = now() where series_id = ${seriesId} and usage_date = ${day}
  `;
  const { waits } = await db.transaction().execute(async (tx) => {
    // Postgres is to end the other transaction, not this one.
    await sql`set local deadlock_timeout = '10s'`.execute(tx);
    await update("2026-03-17").execute(tx);
    const waits = store(other, seriesId, both);
    await expect.poll(waiting).toBe(1);
    await update("2026-03-16").execute(tx);
    return { waits };
  });
  expect(await waits).toMatchObject({ slices: [{ decision: "unchanged" }, { decision: "unchanged" }], rowsChanged: 0 });
  expect(await shown(db, project)).toEqual({ "2026-03-16": { listen: "1" }, "2026-03-17": { listen: "2" } });
});

async function waiting(): Promise<number> {
  const { rows } = await sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `.execute(db);
  return rows.length;
}
