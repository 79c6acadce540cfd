import { sql } from "kysely";
import { expect, test } from "vitest";
import { inTransaction } from "../../../src/db/connection/transaction.ts";
import { registerSeries } from "../../../src/db/usage/stored-series.ts";
import { testDatabase } from "../../support/database.ts";
import { configured, newProject } from "../stored-usage.ts";
import { testSeries } from "./series-behaviour.ts";

const { db } = await testDatabase();

testSeries(db);

test("a process whose series are registered already waits for no other process that registers series", async () => {
  const project = newProject();
  const all = [configured(project, "none"), configured(project, "model")];
  const ids = await registerSeries(db, all);

  const again = await inTransaction(db, async (tx) => {
    await sql`lock table usage_export.series in share row exclusive mode`.execute(tx);
    return registerSeries(db, all);
  });

  expect(again).toEqual(ids);
});
