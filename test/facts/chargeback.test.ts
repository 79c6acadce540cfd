import { pino } from "pino";
import { expect, test } from "vitest";
import { readByStatements } from "../../src/db/connection/transaction.ts";
import { amounts } from "../../src/facts/amounts.ts";
import { CHARGED_BY, chargeback } from "../../src/facts/chargeback.ts";
import { openApi } from "../../src/web/api.ts";
import { forgetAll, storeSeries } from "../db/reported-usage.ts";
import { storeBills, sumOf } from "../db/stored-charges.ts";
import { newProject } from "../db/stored-usage.ts";
import { readCsv } from "../show/read-csv.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();
const PERIOD = { start: "2026-10-01", end: "2026-10-31" };

async function storeMonth() {
  await forgetAll(db);
  const [one, other] = [newProject(), newProject()];
  const due = { start: "2026-09-30", end: "2026-11-01" };
  const usage = {
    "2026-09-30": [["key-1", { hours: "100", requests: "1" }]],
    "2026-10-01": [
      ["key-1", { hours: "0.1", requests: "3" }],
      ["key-2", { hours: "0.2" }],
      [null, { hours: "7" }],
    ],
    "2026-10-31": [["key-1", { hours: "9007199254740993" }]],
    "2026-11-01": [["key-1", { hours: "100" }]],
  } as const;
  const totals = {
    "2026-10-01": [[null, { hours: "7.3", requests: "3" }]],
    "2026-10-31": [[null, { hours: "9007199254740993" }]],
  } as const;
  for (const project of [one, other])
    await storeSeries(db, [
      { project, grouping: "accessor", usage, due, windowDays: 1 },
      { project, grouping: "none", usage: totals, due, windowDays: 1 },
    ]);
  const charge = { accessor: "key-1", deployment: null, line_item: "streaming", tags: null };
  await storeBills(db, one, ["none", "accessor"], PERIOD, [
    { ...charge, day: "2026-10-02", dollars: "1.005" },
    { ...charge, day: "2026-10-03", accessor: "key-2", dollars: "2.25" },
  ]);
  return [one, other];
}

test.each(CHARGED_BY)(
  "the rows of a month by %s add up exactly to the totals, days of other months left out",
  async (by) => {
    const [one] = await storeMonth();
    const charges = await readByStatements(db, (run) => chargeback(run, { period: PERIOD, projects: undefined, by }));
    const metrics = Map.groupBy(charges, ({ metric }) => metric);
    expect([...metrics.keys()].sort()).toEqual(["billed_cost", "hours", "requests"]);
    for (const [metric, rows] of metrics) {
      const none = { before: undefined, projects: undefined, currency: undefined, filter: undefined, group: undefined };
      const question = { ...none, period: PERIOD, metric, grouping: by, limit: 100, sort: "amount" } as const;
      const { total } = await readByStatements(db, (run) => amounts(run, question));
      expect(sumOf(rows.map(({ amount }) => amount))).toBe(total?.amount);
      expect(new Set(rows.map((row) => row.total))).toEqual(new Set([total?.amount]));
    }
    const hours = charges.filter(({ metric, projectId }) => metric === "hours" && projectId === one?.id);
    expect(hours.map(({ group, amount }) => [group, amount])).toEqual(
      by === "project"
        ? [[null, "9007199254741000.3"]]
        : [
            ["key-1", "9007199254740993.1"],
            [null, "7"],
            ["key-2", "0.2"],
          ],
    );
  },
);

test("the CSV has quantities and cost in columns of their own, and says whether the month is complete", async () => {
  const [one, other] = await storeMonth();
  const log = pino({ enabled: false });
  const api = openApi({ log, version: "1", readByStatements: (read) => readByStatements(db, read) });
  const response = await api.request("/api/v1/chargeback.csv?month=2026-10&by=project");
  expect(response.headers.get("content-disposition")).toContain("chargeback-2026-10-by-project.csv");
  const csv = readCsv((await response.text()).replace("\ufeff", ""));
  const [titles, ...rows] = csv.map((row) => row.map(({ text }) => text));
  expect(titles?.join()).toBe(
    "month,project_id,project,api_key,metric,quantity,estimated,billed,currency,share,complete",
  );
  const of = (metric: string) => rows.filter((row) => row[4] === metric).map((row) => row.slice(5));
  expect(of("requests")).toEqual(Array(2).fill(["3", "", "", "", "0.500000", "false"]));
  expect(of("billed_cost")).toEqual([["", "", "3.255", "USD", "1.000000", "true"]]);
  expect(new Set(rows.map((row) => row[1]))).toEqual(new Set([one?.id, other?.id]));
  expect((await api.request("/api/v1/chargeback.csv?month=2026-13")).status).toBe(400);
});
