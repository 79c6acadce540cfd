// What the alerts look at is there: an alert on a metric of another name never fires. That each fires when it should is
// tested with promtool, on alerts.test.yml.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { testMetrics } from "./test-metrics.ts";

const FOLDER = path.join(import.meta.dirname, "../../monitor");
const rules = await readFile(path.join(FOLDER, "alerts.yml"), "utf8");
const ruleTests = await readFile(path.join(FOLDER, "alerts.test.yml"), "utf8");

const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name);
const expressions = [...rules.matchAll(/expr: (?:>-\n((?: {10}.*\n)+)|(.*))/g)].map(([, long, short]) => long ?? short);

test("every metric that an alert looks at is one that a scrape answers", async () => {
  const { text } = await testMetrics().scrape();
  const exposed = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
  const used = expressions.flatMap((expression) => expression?.match(/\busage_export_\w+/g) ?? []);
  expect(expressions).toHaveLength(alerts.length);
  expect(used.length).toBeGreaterThanOrEqual(alerts.length);
  expect(exposed).toEqual(expect.arrayContaining(used));
});

test.each(alerts)("%s is tested", (alert) => {
  expect(ruleTests).toContain(alert);
});
