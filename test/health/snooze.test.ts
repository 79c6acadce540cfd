// What a snooze holds back: notifications, what counts as not well, and which names it fits.

import { expect, test } from "vitest";
import { type Alert, isHeldBy, loudAlerts, snoozeOf } from "../../src/health/alert.ts";
import { alertsOf, isWell, notificationsOf } from "../../src/health/alerts.ts";
import { usageAlertsOf } from "../../src/health/usage-alerts.ts";
import {
  exportOf,
  FAILED,
  healthState,
  jobLine,
  makeBudgetUse,
  NOW,
  OK,
  rotationLine,
  seriesWith,
} from "./sample-health-state.ts";

const HOUR_MS = 60 * 60 * 1000;

function snooze(name: string, hours = 1) {
  return { name, until: new Date(NOW.getTime() + hours * HOUR_MS), at: NOW, by: "ann on node-1" };
}

function loudNames(alerts: readonly Alert[]): readonly string[] {
  return loudAlerts(alerts).map(({ name }) => name);
}

test.each([
  ["gaps nightly", "gaps nightly", true],
  ["gaps nightly", "gaps", true],
  ["gaps nightly", "gaps night", false],
  ["gaps", "gaps nightly", false],
  ["budget november 2026-11 80", "budget november", true],
  ["gaps nightly eu", "gaps nightly", false],
  ["gaps nightly eu", "gaps", true],
  ["overdue export nightly eu", "overdue export", true],
  ["overdue export nightly eu", "overdue export nightly", false],
])("whether the alert %j is held by a snooze of %j: %j", (name, snoozed, isHeld) => {
  expect(isHeldBy(name, { name: snoozed })).toBe(isHeld);
});

test("a snooze of a budget does not hold another one whose name begins with its name", () => {
  const state = healthState({
    budgets: [makeBudgetUse({ name: "prod eu" })],
    snoozes: [snooze("budget prod")],
  });
  expect(loudNames(usageAlertsOf(state))).toEqual([expect.stringMatching(/^budget "prod eu" /)]);
});

test("of several snoozes of an alert the one that ends last counts", () => {
  const [short, long] = [snooze("gaps", 1), snooze("gaps nightly", 2)];
  expect(snoozeOf(["gaps nightly"], [short, long])).toBe(long);
  expect(snoozeOf(["gaps nightly"], [long, short])).toBe(long);
});

test("while an alert is snoozed, neither its beginning nor its end is sent, and afterwards what is then the case", () => {
  const state = (outcome: typeof OK, snoozes = [snooze("export nightly")]) =>
    healthState({ jobs: exportOf(outcome), snoozes });
  const sent = (now: ReturnType<typeof state>, last: "wrong" | "well") =>
    notificationsOf(now, new Map([["export nightly", last]]), (text) => text).map(({ state: phase }) => phase);

  expect(sent(state(FAILED), "well")).toEqual([]);
  expect(sent(state(OK), "wrong")).toEqual([]);
  expect(sent(state(FAILED, []), "well")).toEqual(["wrong"]);
  expect(sent(state(FAILED, []), "wrong")).toEqual([]);
  expect(sent(state(OK, []), "wrong")).toEqual(["well"]);
});

test("all is well while every alert is snoozed, and not if one of two is", () => {
  const jobs = [jobLine({ overdueSince: NOW })];
  const rotations = [rotationLine({ warnings: ["needs attention"] })];
  const both = [snooze("overdue export nightly"), snooze("rotation exporter")];
  expect(isWell(healthState({ jobs, rotations, snoozes: both }))).toBe(true);
  const one = healthState({ jobs, rotations, snoozes: both.slice(1) });
  expect(isWell(one)).toBe(false);
  expect(loudNames(alertsOf(one))).toEqual(["overdue export nightly"]);
  expect(alertsOf(one)).toHaveLength(2);
});

test("a snooze of a rotation holds each notification about it", () => {
  const rotations = [rotationLine({ fallback: "refused", fallbackAt: NOW })];
  const notified = (names: readonly string[]) =>
    notificationsOf(
      healthState({ rotations, snoozes: names.map((name) => snooze(name)) }),
      new Map(),
      (text) => text,
    ).map(({ subject }) => subject);
  expect(notified([])).toEqual(["key fallback exporter"]);
  expect(notified(["rotation exporter"])).toEqual([]);
  expect(notified(["key fallback exporter"])).toEqual([]);
  expect(notified(["key attention exporter"])).toEqual(["key fallback exporter"]);
});

test("the gaps of one job can be snoozed: missing slices count while another job has some, too", () => {
  const line = (key: string) => ({
    ...{
      seriesId: 1,
      key,
      project: "production",
      source: "usage" as const,
      grouping: "none",
      filter: "all",
      isActive: true,
    },
    ...{ complete: 0, missing: 1, failed: 0, suspect: 0, freshThrough: null },
  });
  const jobs = ["nightly", "hourly"].map((job) => jobLine({ job, series: seriesWith(job) }));
  const slices = { complete: 0, missing: 2, failed: 0, suspect: 0 };
  const loud = (names: readonly string[], series = [line("nightly"), line("hourly")]) =>
    loudNames(alertsOf(healthState({ jobs, slices, series, snoozes: names.map((name) => snooze(name)) })));
  expect(loud(["gaps nightly"])).toEqual(["gaps"]);
  expect(loud(["gaps nightly"], [line("nightly")])).toEqual([]);
  expect(loud(["gaps nightly", "gaps hourly"])).toEqual([]);
  expect(loud(["gaps"])).toEqual([]);
});
