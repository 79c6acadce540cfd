// The forecast in a report is that of bi.usage_forecast, over all projects.

import { expect, test } from "vitest";
import { readReportData } from "../../../src/db/report/report.ts";
import { addDays } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, newProject } from "../stored-usage.ts";
import { storeSeries, type Usage } from "./reported-usage.ts";

const { db } = await testDatabase();

test("a report whose period ends in the current month has the forecasts of all projects, added up", async () => {
  const back = await daysBack(db);
  const usageOf = (requests: string): Usage =>
    Object.fromEntries(Array.from({ length: 75 }, (_, n) => [back(n + 1), [[undefined, { requests }]]]));
  await storeSeries(db, [
    { project: newProject(), grouping: "none", usage: usageOf("100") },
    { project: newProject(), grouping: "none", usage: usageOf("20") },
  ]);
  const [year = 0, month = 0] = back(0).split("-").map(Number);
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const expected = String(120 * days);
  const { forecast } = await readReportData(db, { start: back(6), end: back(0) }, new Date());
  const monthStart = `${back(0).slice(0, 8)}01`;
  expect(forecast).toEqual([
    { month: monthStart, metric: "requests", forecast: expected, low: expected, high: expected },
  ]);
  const ofOne = { forecastProjectsMax: 1 };
  const leftOut = await readReportData(db, { start: back(6), end: back(0) }, new Date(), ofOne);
  expect(leftOut.forecast).toBe("left out");
  const lastMonth = addDays(monthStart, -1);
  const earlier = await readReportData(db, { start: addDays(lastMonth, -6), end: lastMonth }, new Date());
  expect(earlier.forecast).toEqual([]);
  const earlierOfOne = await readReportData(db, { start: addDays(lastMonth, -6), end: lastMonth }, new Date(), ofOne);
  expect(earlierOfOne.forecast).toEqual([]);
});
