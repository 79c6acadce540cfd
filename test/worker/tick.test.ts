// Which runs a worker starts at a tick.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { openQueue } from "../../src/db/jobs/queue.ts";
import { registerSeries } from "../../src/db/usage/stored-series.ts";
import { configuredSeries } from "../../src/usage/plan.ts";
import type { WorkerContext } from "../../src/worker/context.ts";
import { tick } from "../../src/worker/tick.ts";
import { smallConfig } from "../cli/small-config.ts";
import { farSchedule } from "../cli/workers.ts";
import { testDatabase } from "../support/database.ts";
import { silentApp } from "../support/silent-app.ts";

const { db } = await testDatabase();

test("a scheduled run waits for the end of a run that was late", async () => {
  const app = silentApp();
  const written = smallConfig("https://api.example.com", { exports: [{ schedule: farSchedule() }] });
  const config = parseConfig(JSON.stringify(written), { source: "test", baseDir: "/" });
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const context = { app, db, config, ids, queue: await openQueue(db, app.log) } as unknown as WorkerContext;
  const runs = async () => {
    const { rows } = await sql<{ trigger: string }>`select trigger from bi.runs`.execute(db);
    return rows.map(({ trigger }) => trigger);
  };
  expect(await tick(context)).toBe(true);
  expect(await runs()).toEqual(["catchup"]);
  // As if that run were of the day before, and its time came again.
  await sql`update usage_export.run set scheduled_for = scheduled_for - interval '1 day'`.execute(db);
  await sql`update usage_export.job set scheduled_through = scheduled_through - interval '1 day'`.execute(db);
  expect(await tick(context)).toBe(false);
  await sql`update usage_export.run set status = 'ok', finished_at = now()`.execute(db);
  expect(await tick(context)).toBe(true);
  expect(await runs()).toHaveLength(2);
});
