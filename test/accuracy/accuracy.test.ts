// The forecast is as good as docs/forecast.md says. The seeds are fixed, so the figures are always the same.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { anomalyTable } from "./anomaly-hits.ts";
import { forecastTable } from "./forecast-errors.ts";

const { db } = await testDatabase();
const page = fs.readFileSync(path.join(import.meta.dirname, "../../docs/forecast.md"), "utf8");

test("the error of the forecast is the documented one; after a change: npm run accuracy", async () => {
  expect(page).toContain(await forecastTable(db));
});

test("hits and false alarms of anomalies are the documented ones; after a change: npm run accuracy", async () => {
  expect(page).toContain(await anomalyTable(db));
});

test("the documented error is below that of last month again on all usage, and nowhere far above that of a straight line", () => {
  const rows = [...page.matchAll(/^\| .* \| 24 \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|/gm)];
  expect(rows.length).toBe(7);
  for (const [row, forecast, lastMonth, straightLine] of rows) {
    expect(Number(forecast), row).toBeLessThan(Number(lastMonth));
    expect(Number(forecast), row).toBeLessThan(Number(straightLine) + 1.5);
  }
});
