// The alert rules use only metrics that exist: a rule on a metric with another name would never fire. alerts.test.yml tests with
// promtool that each rule fires when it should.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { testMetrics } from "./test-metrics.ts";

const FOLDER = path.join(import.meta.dirname, "../../monitor");
const rules = await readFile(path.join(FOLDER, "alerts.yml"), "utf8");
const ruleTests = await readFile(path.join(FOLDER, "alerts.test.yml"), "utf8");

const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name);
const expressions = [...rules.matchAll(/expr: (?:>-\n((?: {10}.*\n)+)|(.*))/g)].map(([, long, short]) => long ?? short);

test("every metric that an alert rule uses is in the answer to a scrape", async () => {
  const { text } = await testMetrics().scrape();
  const exposed = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
  const used = expressions.flatMap((expression) => expression?.match(/\busage_export_\w+/g) ?? []);
  expect(expressions).toHaveLength(alerts.length);
  expect(used.length).toBeGreaterThanOrEqual(alerts.length);
  expect(exposed).toEqual(expect.arrayContaining(used));
});

test.each(alerts)("alerts.test.yml has a test of %s", (alert) => {
  expect(ruleTests).toContain(alert);
});
