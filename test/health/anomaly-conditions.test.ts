// Conditions and notifications about unusual days.

import { expect, test } from "vitest";
import type { Anomaly, JudgedUsage } from "../../src/db/anomalies.ts";
import { isWell, problemsOf } from "../../src/health/conditions.ts";
import type { Phase } from "../../src/health/notifications.ts";
import { healthState, notified as notifiedOf } from "./sample-health-state.ts";

const HIGH: Anomaly = {
  day: "2026-03-06",
  direction: "high",
  metric: "requests",
  amount: "12345",
  expected: "4000",
  low: "3100.5",
  high: "4900",
  isOpen: true,
};

function usage(anomalies: readonly Anomaly[], part: Partial<JudgedUsage> = {}): JudgedUsage {
  return { project: "production", filter: "all", unfiltered: true, through: "2026-03-07", anomalies, ...part };
}

function notified(usages: readonly JudgedUsage[], lastSent: Readonly<Record<string, Phase>> = {}) {
  return notifiedOf(healthState({ anomalies: usages }), lastSent);
}

const TEXT = "unusual usage of production on 2026-03-06: Requests: 12,345, usually 3,101 to 4,900";

test("an unusual day is an alert with its amount and what is usual, and the program is well all the same", () => {
  const state = healthState({ anomalies: [usage([HIGH])] });
  expect(problemsOf(state).reminders).toMatchObject([{ name: "anomaly", subject: "production", text: TEXT }]);
  expect(isWell(state)).toBe(true);
});

test("many unusual days of a project and filter are one alert about the newest", () => {
  const days = [HIGH, { ...HIGH, day: "2026-03-05" }, { ...HIGH, day: "2026-03-01", isOpen: false }];
  const filtered = usage(days, { filter: "diarized", unfiltered: false });
  expect(problemsOf(healthState({ anomalies: [filtered] })).shown).toMatchObject([
    {
      subject: "production diarized",
      text: `${TEXT.replace("production", "production under diarized")}; also 1 day before it`,
    },
  ]);
});

test("it is notified once, and once when it is over", () => {
  const [opened, ...others] = notified([usage([HIGH])]);
  expect(opened).toEqual({ subject: "anomaly production", state: "wrong", text: TEXT.replace("unusual", "Unusual") });
  expect(others).toEqual([]);
  const sent = { "anomaly production": "wrong" } as const;
  expect(notified([usage([{ ...HIGH, day: "2026-03-07" }, HIGH])], sent)).toEqual([]);
  const text = "The alert about unusual usage of production is over; days are judged through 2026-03-07.";
  const over = [usage([{ ...HIGH, isOpen: false }])];
  expect(notified(over, sent)).toEqual([{ subject: "anomaly production", state: "well", text }]);
  expect(notified(over, { "anomaly production": "well" })).toEqual([]);
});

test("a filter of a project and a project with both names are notified apart", () => {
  const usages = [
    usage([HIGH], { project: "acme", filter: "eu", unfiltered: false }),
    usage([{ ...HIGH, isOpen: false }], { project: "acme eu" }),
  ];
  expect(notified(usages)).toMatchObject([{ subject: "anomaly acme eu", state: "wrong" }]);
  expect(notified(usages, { "anomaly acme eu": "wrong" })).toEqual([]);
});

test("an alert is not over while unusual days can't be read", () => {
  const state = healthState({ notRead: [{ kind: "anomaly", error: "statement timeout" }] });
  expect(notifiedOf(state, { "anomaly production": "wrong" })).toEqual([]);
});
