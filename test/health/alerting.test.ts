// The alert rules name only metrics that exist, as a rule on another would never fire (alerts.test.yml tests with promtool that each fires), and a
// worker pings the dead man's switch only while all is well.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { daysBack, store, total } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { testMetrics } from "./test-metrics.ts";
import { openNotifierFixture } from "./test-notifier.ts";

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

const { db } = await testDatabase();

test("the dead man's switch is pinged once a minute while all is well, and not while a slice is failed", async () => {
  await using fixture = await openNotifierFixture(db);
  const { tick } = fixture.notifier("deadMan");
  for (let i = 0; i < 5; i++) await tick();
  // A new minute may have begun during the ticks; then there are two pings.
  expect(fixture.requests.length).toBeLessThanOrEqual(2);
  expect(fixture.requests[0]).toBe("GET /deadMan");

  const pings = fixture.requests.length;
  const day = (await daysBack(db))(1);
  const { seriesId } = fixture;
  await recordFailure(db, { seriesId, days: [day], fetchNo: await nextFetchNo(db), reason: "down" });
  await fixture.notifier("deadMan").tick();
  expect(fixture.requests).toHaveLength(pings);

  await store(db, seriesId, [total(day, { requests: "1" })], { grouping: "none" });
  await fixture.notifier("deadMan").tick();
  expect(fixture.requests).toHaveLength(pings + 1);
});
