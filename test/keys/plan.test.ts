import { expect, test } from "vitest";
import { cleanupSteps, FAILED_ATTEMPTS_MAX, planRotation } from "../../src/keys/plan.ts";
import { daysAgo, draining, JOB, key, ledger, NOW, pending } from "./sample-ledger.ts";

test("a rollback without a previous key is blocked, with the reason", () => {
  const plan = planRotation(JOB, ledger([key({ requestedAt: daysAgo(99) })]), NOW, { wants: "previous", at: NOW });
  expect(plan).toEqual({ blocked: "there is no previous key to roll back to" });
});

const DUE = key({ requestedAt: daysAgo(30) });

test.each([
  [FAILED_ATTEMPTS_MAX - 1, "create", undefined],
  [FAILED_ATTEMPTS_MAX, undefined, /^needs attention: 5 attempts failed, the last with: sink away; nothing is created/],
  [FAILED_ATTEMPTS_MAX + 1, undefined, /^needs attention: 6/],
])("after %i failures in a row the next step is %s", (failedAttempts, next, blocked) => {
  const plan = planRotation(JOB, ledger([DUE], { failedAttempts, lastError: "sink away" }), NOW);
  expect(plan.next?.kind).toBe(next);
  if (blocked) expect(plan.blocked).toMatch(blocked);
  else expect(plan.blocked).toBeUndefined();
});

test("failed attempts stop neither a delivery nor a person's request", () => {
  const many = { failedAttempts: 9 };
  expect(planRotation(JOB, ledger([DUE, pending("verified")], many), NOW).next?.kind).toBe("deliver");
  expect(planRotation(JOB, ledger([DUE], many), NOW, { wants: "fresh", at: NOW }).next?.kind).toBe("create");
});

test("with nothing to do the plan says when the key is due", () => {
  const { idle } = planRotation(JOB, ledger([key({ requestedAt: daysAgo(2, 1) })]), NOW);
  expect(idle).toBe("the active key is 1 days old; due in 29 days");
});

test("a create and a cleanup say their reason", () => {
  const state = ledger([DUE, draining({ drainingSince: daysAgo(8) })]);
  expect(planRotation(JOB, state, NOW).next?.reason).toBe("the active key is 30 days old, of at most 30");
  expect(cleanupSteps(JOB, state, NOW).map(({ reason }) => reason)).toEqual([
    "it was replaced 8 days ago, and its grace is 7 days",
  ]);
});
