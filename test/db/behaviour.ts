// The tests that a Postgres server and the embedded database must both pass.

import { describe } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { testAnomalies } from "./anomalies-behaviour.ts";
import { testDump } from "./dump-behaviour.ts";
import { testHealth } from "./health-behaviour.ts";
import { testNotificationClaims } from "./notifications-behaviour.ts";
import { testFailures } from "./usage/failures-behaviour.ts";
import { testMerge } from "./usage/merge-behaviour.ts";
import { testSeries } from "./usage/series-behaviour.ts";
import { testUndated } from "./usage/undated-behaviour.ts";

export function testBehaviour(db: Database): void {
  describe("dump", () => testDump(db));
  describe("merge", () => testMerge(db));
  describe("undated", () => testUndated(db));
  describe("series", () => testSeries(db));
  describe("failures", () => testFailures(db));
  describe("anomalies", () => testAnomalies(db));
  describe("health", () => testHealth(db));
  describe("notifications", () => testNotificationClaims(db));
}
