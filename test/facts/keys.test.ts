import { sql } from "kysely";
import { expect, test } from "vitest";
import { keyStatuses } from "../../src/facts/keys.ts";
import { newIntent, newKey, newRotation } from "../db/keys/written-ledger.ts";
import { newProject, newSeries, rowOf, rowsOn, store } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

test("a key's last use is the newest day for which requests by it are still stored, as in bi.api_keys", async () => {
  const project = newProject();
  const { job, key } = await newRotation(db, { project });
  const [used, gone, never] = [newIntent(), newIntent(), newIntent()];
  for (const intentId of [used, gone, never]) await key(intentId, "active");
  const ids = new Map([used, gone, never].map((intentId) => [intentId, newKey(intentId).apiKeyId]));

  const { seriesId } = await newSeries(db, "accessor", { project });
  const usage = (day: string, requests: Readonly<Record<string, string>>) => {
    const rows = Object.entries(requests).map(([intent, count]) =>
      rowOf(ids.get(intent) ?? "", count, null, "accessor"),
    );
    return store(db, seriesId, [rowsOn(day, rows)], { grouping: "accessor" });
  };
  await usage("2026-03-10", { [used]: "1", [gone]: "1" });
  await usage("2026-03-11", { [used]: "1", [gone]: "1" });
  // The newest answer of this day no longer has the second key.
  await usage("2026-03-11", { [used]: "1" });
  await usage("2026-03-12", { [used]: "0" });

  const rows = (await keyStatuses(db)).filter(({ rotation }) => rotation === job.name);
  expect(new Map(rows.map(({ intentId, lastSeenInUse }) => [intentId, lastSeenInUse]))).toEqual(
    new Map([
      [used, "2026-03-11"],
      [gone, "2026-03-10"],
      [never, null],
    ]),
  );
  const { rows: viewed } = await sql`
    select api_key_id as "apiKeyId", state, comment, floor(age_days)::integer as "ageDays",
      last_seen_in_use as "lastSeenInUse", due_for_removal_at as "dueForRemovalAt"
    from bi.api_keys where rotation = ${job.name} and state <> 'retired' order by requested_at desc
  `.execute(db);
  expect(rows).toMatchObject(viewed);
});
