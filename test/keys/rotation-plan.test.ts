import { expect, test } from "vitest";
import type { RotationConfig } from "../../src/config/rotations.ts";
import {
  cleanupSteps,
  FAILED_ATTEMPTS_MAX,
  type LedgerKey,
  nextStep,
  planRotation,
  type RotationRequest,
  type RotationState,
} from "../../src/keys/rotation-plan.ts";
import { COMMAND, daysAgo, draining, FILE, IN_FILE, JOB, key, ledger, NOW, orphan, pending } from "./sample-ledger.ts";

test("a rollback without a previous key is blocked, with the reason", () => {
  const plan = planRotation(JOB, ledger([key({ requestedAt: daysAgo(99) })]), NOW, { wants: "previous", at: NOW });
  expect(plan).toEqual({ blocked: "there is no previous key to roll back to" });
});

/** JOB has a maxAgeDays of 30 and a graceDays of 7. `daysAgo(30, 1)` is 1 ms later than `daysAgo(30)`. */
const TOO_OLD = key({ requestedAt: daysAgo(30) });

test.each([
  [FAILED_ATTEMPTS_MAX - 1, "create", undefined],
  [FAILED_ATTEMPTS_MAX, "none", /^needs attention: 5 attempts failed, the last with: sink away; nothing is created/],
  [FAILED_ATTEMPTS_MAX + 1, "none", /^needs attention: 6/],
])("after %i failures in a row the next step is %s", (failedAttempts, next, blocked) => {
  const plan = planRotation(JOB, ledger([TOO_OLD], { failedAttempts, lastError: "sink away" }), NOW);
  expect(plan.next?.kind ?? "none").toBe(next);
  if (blocked) expect(plan.blocked).toMatch(blocked);
  else expect(plan.blocked).toBeUndefined();
});

test("failed attempts stop neither a delivery nor a person's request", () => {
  const many = { failedAttempts: 9 };
  expect(planRotation(JOB, ledger([TOO_OLD, pending("verified")], many), NOW).next?.kind).toBe("deliver");
  expect(planRotation(JOB, ledger([TOO_OLD], many), NOW, { wants: "fresh", at: NOW }).next?.kind).toBe("create");
});

test("with nothing to do the plan says when the key is due", () => {
  const { idle } = planRotation(JOB, ledger([key({ requestedAt: daysAgo(2, 1) })]), NOW);
  expect(idle).toBe("the active key is 1 day old; due in 29 days");
});

test("a create and a cleanup say their reason", () => {
  const state = ledger([TOO_OLD, draining({ drainingSince: daysAgo(8) })]);
  expect(planRotation(JOB, state, NOW).next?.reason).toBe("the active key is 30 days old, of at most 30");
  expect(cleanupSteps(JOB, state, NOW).map(({ reason }) => reason)).toEqual([
    "it was replaced 8 days ago, and its grace is 7 days",
  ]);
});

type Given = Partial<RotationState> & {
  readonly job?: Partial<RotationConfig>;
  readonly wants?: RotationRequest["wants"];
};
type Case = readonly [name: string, next: string, keys: readonly LedgerKey[], given?: Given];

/** Expects the next step and its key, as in "deliver ue-1", or "none". */
function expectNext([_, expected, keys, { job, wants, ...rest } = {}]: Case): void {
  const next = nextStep({ ...JOB, ...job }, ledger(keys, rest), NOW, wants && { wants, at: NOW });
  expect(next ? ("key" in next ? `${next.kind} ${next.key.intentId}` : next.kind) : "none").toBe(expected);
}

const FAILED = { failedAttempts: 1 };

test.for<Case>([
  ["there is no key", "create", []],
  ["there are only orphans", "create", [orphan()]],
  ["there is only a draining key", "create", [draining()]],
  ["the key is 1 ms younger than maxAgeDays", "none", [key({ requestedAt: daysAgo(30, 1) })]],
  ["the key is exactly maxAgeDays old", "create", [key({ requestedAt: daysAgo(30) })]],
  ["a key in use for 2 days is maxAgeDays old", "create", [key({ requestedAt: daysAgo(30), activeSince: daysAgo(2) })]],
  ["the key was restored 1 ms less than maxAgeDays ago", "none", [{ ...TOO_OLD, rollbackAt: daysAgo(30, 1) }]],
  ["the key was restored maxAgeDays ago", "create", [key({ requestedAt: daysAgo(90), rollbackAt: daysAgo(30) })]],
  ["the key expires in graceDays and 1 ms", "none", [key({ expiresAt: daysAgo(-7, 1) })]],
  ["the key expires in exactly graceDays", "create", [key({ expiresAt: daysAgo(-7) })]],
  ["the key has expired", "create", [key({ expiresAt: daysAgo(1) })]],
])("if %s, the next step is %s", expectNext);

test.for<Case>([
  ["may have been created", "mark-orphan ue-new", [key(), pending("intent")]],
  ["is stored", "verify ue-new", [key(), pending("stored")]],
  ["is stored and an attempt failed", "verify ue-new", [key(), pending("stored")], FAILED],
  ["works and no sink has it", "deliver ue-new", [key(), pending("verified")]],
  ["works and every sink has it", "promote ue-new", [key(), pending("verified", { heldBy: IN_FILE })]],
  ["works and there is no sink", "promote ue-new", [key(), pending("verified")], { job: { deliver: [] } }],
  ["is stored while the active one is due", "verify ue-new", [key({ requestedAt: daysAgo(60) }), pending("stored")]],
])("if a pending key %s, the next step is %s", expectNext);

test("a key in use that the service refuses is replaced, with the refusal as the reason", () => {
  const step = nextStep(JOB, ledger([key()]), NOW, undefined, { refusal: "refused (401)" });
  expect(step).toEqual({ kind: "create", reason: "refused (401)" });
});

test("a key in use is delivered again to a sink that lost it, with what is wrong there as the reason", () => {
  const stale = new Map([["file /run/exporter.key", "the file is gone"]]);
  const step = nextStep({ ...JOB, deliver: [FILE, COMMAND] }, ledger([key()]), NOW, undefined, { stale });
  expect(step).toMatchObject({ kind: "deliver", sinks: [FILE, COMMAND] });
  expect(step?.reason).toContain("the file is gone");
});

test("a delivery goes only to the sinks that do not have the key", () => {
  const job = { ...JOB, deliver: [FILE, COMMAND] };
  const next = nextStep(job, ledger([key(), pending("verified", { heldBy: IN_FILE })]), NOW);
  expect(next).toMatchObject({ kind: "deliver", sinks: [COMMAND] });
});

const UNDELIVERED = { heldBy: [] };

test.for<Case>([
  ["a sink was added", "deliver ue-1", [key(UNDELIVERED)]],
  ["a sink was added and the key is due", "create", [key({ ...UNDELIVERED, requestedAt: daysAgo(30) })]],
  ["a sink was removed", "none", [key()], { job: { deliver: [] } }],
  ["an attempt failed and nothing is left to do", "recover", [key()], FAILED],
  ["an attempt failed and a sink lacks the key", "deliver ue-1", [key(UNDELIVERED)], FAILED],
])("if %s, the next step for the active key is %s", expectNext);

const [EARLIER, SAME_TIME] = [{ requestedAt: daysAgo(1) }, { requestedAt: NOW }];
const FRESH = { wants: "fresh" } as const;
const FRESH_FAILED = { ...FRESH, ...FAILED } as const;

test.for<Case>([
  ["the active key is older than the request", "create", [key()], FRESH],
  ["the active key is exactly as old as the request", "none", [key({ activeSince: NOW })], FRESH],
  ["a key is pending", "verify ue-new", [key(), pending("stored", EARLIER)], FRESH],
  ["a pending key has failed before", "discard ue-new", [key(), pending("stored", EARLIER)], FRESH_FAILED],
  ["a key made for the request has failed", "verify ue-new", [key(), pending("stored", SAME_TIME)], FRESH_FAILED],
  ["a delivery of a pending key failed", "deliver ue-new", [key(), pending("verified", EARLIER)], FRESH_FAILED],
])("if a fresh key is requested and %s, the next step is %s", expectNext);

const NEWER = key({ intentId: "ue-2" });
const OLDER = draining({ intentId: "ue-a", requestedAt: daysAgo(60) });
const PREVIOUS = { wants: "previous" } as const;
const ROLLBACK = { rollbackTo: "ue-0" };

test.for<Case>([
  ["requested and there is one draining key", "rollback ue-0", [draining(), NEWER], PREVIOUS],
  ["requested and there are two draining keys", "rollback ue-0", [OLDER, draining(), NEWER], PREVIOUS],
  ["requested and the draining key is newer", "none", [key(), draining({ requestedAt: daysAgo(0) })], PREVIOUS],
  ["requested and the draining key was never active", "none", [draining({ activeSince: null }), NEWER], PREVIOUS],
  ["requested and the replaced key was retired", "none", [{ ...draining(), state: "retired" }, NEWER], PREVIOUS],
  ["requested and no key is active", "none", [draining()], PREVIOUS],
  ["requested after a rollback", "rollback ue-0", [draining(), { ...NEWER, rollbackAt: daysAgo(1) }], PREVIOUS],
  ["requested and already done by another process", "none", [key({ rollbackAt: NOW }), draining()], PREVIOUS],
  ["requested and another key is pending", "rollback ue-0", [draining(), NEWER, pending("stored")], PREVIOUS],
  ["recorded while the sinks have another key", "deliver ue-0", [draining(), NEWER], ROLLBACK],
  ["recorded while every sink has the previous key", "promote ue-0", [draining({ heldBy: IN_FILE }), NEWER], ROLLBACK],
  ["recorded after a create was begun", "mark-orphan ue-new", [draining(), NEWER, pending("intent")], ROLLBACK],
  ["recorded while another key is pending", "discard ue-new", [draining(), NEWER, pending("verified")], ROLLBACK],
  ["recorded before a fresh key was requested", "create", [draining(), NEWER], { ...ROLLBACK, ...FRESH }],
  ["recorded and already done", "none", [key(), draining({ intentId: "ue-2" })], { rollbackTo: "ue-1" }],
])("if a rollback is %s, the next step is %s", expectNext);

const HOUR_MS = 60 * 60 * 1000;
const DELETE = { retire: "delete" } as const;
const DUE = { dueForRemovalAt: daysAgo(1) };
const DUE_BUT_HELD = { ...DUE, heldBy: IN_FILE };
const TWO_SINKS = { deliver: [FILE, COMMAND] };
const REPLACED = [draining({ drainingSince: daysAgo(9) }), key()];
const FOUND = [orphan({ apiKeyId: "k" })];

type CleanupGiven = Partial<RotationConfig> & Pick<Partial<RotationState>, "rollbackTo">;
type CleanupCase = readonly [name: string, step: string, keys: readonly LedgerKey[], given?: CleanupGiven];

function stepsOf(keys: readonly LedgerKey[], { rollbackTo = null, ...job }: CleanupGiven = {}): string[] {
  const steps = cleanupSteps({ ...JOB, ...job }, ledger(keys, { rollbackTo }), NOW);
  return steps.map((step) => `${step.kind} ${step.key.intentId}`);
}

test.for<CleanupCase>([
  ["1 ms before the end of its grace period", "none", [draining({ drainingSince: daysAgo(7, 1) }), key()]],
  ["exactly at the end of its grace period", "mark-due ue-0", [draining({ drainingSince: daysAgo(7) }), key()]],
  ["replaced just now", "mark-due ue-0", [draining({ drainingSince: NOW }), key()], { graceDays: 0 }],
  ["past its grace period", "mark-due ue-0", REPLACED],
  ["past its grace period while no key is active", "none", REPLACED.slice(0, 1)],
  ["past its grace period but to be restored", "none", REPLACED, ROLLBACK],
  ["due while retire is keep", "recheck ue-0", [draining(DUE), key()]],
  ["due", "delete ue-0", [draining(DUE), key()], DELETE],
  ["due but still in the only sink", "recheck ue-0", [draining(DUE_BUT_HELD), key()], DELETE],
  ["due but still in one of two sinks", "recheck ue-0", [draining(DUE_BUT_HELD), key()], { ...DELETE, ...TWO_SINKS }],
  ["due and in a removed sink", "delete ue-0", [draining({ ...DUE, heldBy: ["file /gone"] }), key()], DELETE],
  ["due while no key is active", "none", [draining(DUE)], DELETE],
  ["due but to be restored", "none", [draining(DUE), key()], { ...DELETE, ...ROLLBACK }],
  ["an orphan whose API key id is not known", "search ue-lost", [orphan()]],
  ["an orphan whose API key id was found, with retire keep", "recheck ue-lost", FOUND],
  ["an orphan whose API key id was found, with no active key", "delete ue-lost", FOUND, DELETE],
  ["active", "none", [key({ requestedAt: daysAgo(999), activeSince: daysAgo(999) })], { ...DELETE, graceDays: 0 }],
  ["due for removal by mistake, and active", "none", [key(DUE)], DELETE],
  ["pending", "none", [key(), pending("stored", { requestedAt: daysAgo(99) })], DELETE],
])("for a key that is %s, the step of the cleanup is %s", ([_, step, keys, given]) => {
  expect(stepsOf(keys, given)).toEqual(step === "none" ? [] : [step]);
});

test.each([
  ["is repeated until an hour after its request", HOUR_MS, false],
  ["is given up after more than an hour", HOUR_MS + 1, true],
])("the search for an orphan %s", (_, agoMs, giveUp) => {
  const state = ledger([orphan({ requestedAt: new Date(NOW.getTime() - agoMs) })]);
  expect(cleanupSteps(JOB, state, NOW)).toMatchObject([{ kind: "search", giveUp }]);
});

test("each replaced or lost key has its own step", () => {
  const keys = [draining(DUE), draining({ intentId: "ue-a", drainingSince: daysAgo(8) }), key(), orphan()];
  expect(stepsOf(keys)).toEqual(["recheck ue-0", "mark-due ue-a", "search ue-lost"]);
});
