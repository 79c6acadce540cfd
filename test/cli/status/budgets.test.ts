// A budget through the whole program: stored by an export, shown by `status` and in the report.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const yesterday = addDays(dayOf(new Date()), -1);
const BUDGET = { name: "calls", metric: "requests", amount: "0.5", period: "day", from: yesterday };

test("a budget that is used up is shown by `status`, which still ends with 0, and in the report", async ({
  context,
}) => {
  const emulator = await context.serve();
  await context.configure({ ...smallConfig(emulator.url), budgets: [BUDGET] });
  await context.run(["export"]);
  const { rows } = await sql<{ used: string; requests: string }>`
    select b.used::text, u.requests::text from bi.budgets b join bi.usage_total u on u.usage_date = b.period_start
  `.execute(db);
  expect(rows).toHaveLength(1);
  expect(rows[0]?.used).toBe(rows[0]?.requests);

  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toMatch(
    new RegExp(
      `^all is well\nreminders:\n  budget calls \\(${yesterday}\\) reached 100%: [\\d,]+ of 0.5 requests \\(\\d+%\\)`,
    ),
  );
  expect(stdout).toMatch(/\nbudget calls \(\d{4}-\d\d-\d\d\): no day of it was read yet; the budget is 0.5 requests\n/);
  expect(status).toBe(0);
  await context.run(["report", "--out", "report.html"]);
  const report = await readFile(path.join(context.folder, "report.html"), "utf8");
  expect(report).toMatch(/id="budgets"[\s\S]*>calls<[\s\S]*of 0\.5 requests \(\d+%\)/);
});
