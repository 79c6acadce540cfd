import { expect, test } from "vitest";
import type { Ledger } from "../../src/keys/ledger.ts";
import { FAILED_ATTEMPTS_MAX, needsAttention, planRotation, type Wish } from "../../src/keys/plan.ts";
import type { RotationJob } from "../../src/keys/policy.ts";
import { COMMAND, daysAgo, draining, FILE, IN_FILE, JOB, key, ledger, NOW, orphan, pending } from "./sample-ledger.ts";

type Given = { readonly job?: Partial<RotationJob>; readonly wish?: Wish };
type Case = readonly [name: string, ledger: Ledger, next: string | undefined, given?: Given];

function cases(...rows: readonly Case[]) {
  return rows.map(([name, state, next, given]) => ({ name, state, next, given }));
}

/** The next step and the key it is about, in words. */
function nextOf(state: Ledger, { job, wish }: Given = {}): string | undefined {
  const { next } = planRotation({ ...JOB, ...job }, state, NOW, wish);
  return next && ("key" in next ? `${next.kind} ${next.key.intentId}` : next.kind);
}

const NOW_ASKED = { wish: { freshSince: NOW } };
const BACK_ASKED = { wish: { previousSince: NOW } };

test.each(
  cases(
    ["nothing was ever made", ledger([]), "create"],
    ["only orphans are there", ledger([orphan()]), "create"],
    ["only a draining key is there", ledger([draining()]), "create"],
    ["the key is younger than its most age by a moment", ledger([key({ requestedAt: daysAgo(30, 1) })]), undefined],
    ["the key has exactly its most age", ledger([key({ requestedAt: daysAgo(30) })]), "create"],
    ["the key is past its most age by a moment", ledger([key({ requestedAt: daysAgo(30, -1) })]), "create"],
    [
      "the key was asked for long before it could be taken into use",
      ledger([key({ requestedAt: daysAgo(30), activeSince: daysAgo(2) })]),
      "create",
    ],
    [
      "an old key was put back less than its most age ago",
      ledger([key({ requestedAt: daysAgo(90), putBackAt: daysAgo(30, 1) })]),
      undefined,
    ],
    [
      "an old key was put back its most age ago",
      ledger([key({ requestedAt: daysAgo(90), putBackAt: daysAgo(30) })]),
      "create",
    ],
    ["the key ends by itself just after the grace", ledger([key({ expiresAt: daysAgo(-7, 1) })]), undefined],
    ["the key ends by itself exactly after the grace", ledger([key({ expiresAt: daysAgo(-7) })]), "create"],
    ["the key has ended by itself", ledger([key({ expiresAt: daysAgo(1) })]), "create"],
  ),
)("towards a new key, when $name", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

test.each(
  cases(
    ["it may have been asked for", ledger([key(), pending("intent")]), "lose ue-new"],
    ["it is stored", ledger([key(), pending("stored")]), "verify ue-new"],
    ["it works and no sink has it", ledger([key(), pending("verified")]), "deliver ue-new"],
    [
      "it works and one of two sinks has it",
      ledger([key(), pending("verified", { deliveredTo: IN_FILE })]),
      "deliver ue-new",
      { job: { deliver: [FILE, COMMAND] } },
    ],
    [
      "it works and every sink has it",
      ledger([key(), pending("verified", { deliveredTo: IN_FILE })]),
      "promote ue-new",
    ],
    ["it works and there is no sink", ledger([key(), pending("verified")]), "promote ue-new", { job: { deliver: [] } }],
    [
      "it is on its way and the active key is due",
      ledger([key({ requestedAt: daysAgo(60) }), pending("stored")]),
      "verify ue-new",
    ],
  ),
)("a key on its way, when $name", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

test("a delivery goes only to the sinks that do not have the key", () => {
  const job = { ...JOB, deliver: [FILE, COMMAND] };
  const { next } = planRotation(job, ledger([key(), pending("verified", { deliveredTo: IN_FILE })]), NOW);
  expect(next).toMatchObject({ kind: "deliver", sinks: [COMMAND] });
});

test.each(
  cases(
    ["a sink was added", ledger([key({ deliveredTo: [] })]), "deliver ue-1"],
    ["a sink was added and the key is due", ledger([key({ deliveredTo: [], requestedAt: daysAgo(30) })]), "create"],
    ["a sink was taken away", ledger([key()]), undefined, { job: { deliver: [] } }],
    ["earlier attempts failed and nothing is left to do", ledger([key()], { failedAttempts: 1 }), "settle"],
    [
      "earlier attempts failed and a sink is left",
      ledger([key({ deliveredTo: [] })], { failedAttempts: 1 }),
      "deliver ue-1",
    ],
  ),
)("the key in use, when $name", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

test.each(
  cases(
    ["the key in use is older than the wish", ledger([key()]), "create", NOW_ASKED],
    ["the key in use is as old as the wish", ledger([key({ activeSince: NOW })]), undefined, NOW_ASKED],
    [
      "a key is on its way",
      ledger([key(), pending("stored", { requestedAt: daysAgo(1) })]),
      "verify ue-new",
      NOW_ASKED,
    ],
    [
      "a key on its way has failed before",
      ledger([key(), pending("stored", { requestedAt: daysAgo(1) })], { failedAttempts: 1 }),
      "abandon ue-new",
      NOW_ASKED,
    ],
    [
      "a key made for this wish has failed",
      ledger([key(), pending("stored", { requestedAt: NOW })], { failedAttempts: 1 }),
      "verify ue-new",
      NOW_ASKED,
    ],
    [
      "a key on its way works and its delivery has failed before",
      ledger([key(), pending("verified", { requestedAt: daysAgo(1) })], { failedAttempts: 1 }),
      "deliver ue-new",
      NOW_ASKED,
    ],
  ),
)("a fresh key is asked for, and $name", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

const NEWER = key({ intentId: "ue-2" });

test.each(
  cases(
    ["there is one", ledger([draining(), NEWER]), "recall ue-0", BACK_ASKED],
    [
      "there are two",
      ledger([draining({ intentId: "ue-a", requestedAt: daysAgo(60) }), draining(), NEWER]),
      "recall ue-0",
      BACK_ASKED,
    ],
    ["the other key is newer", ledger([key(), draining({ requestedAt: daysAgo(0) })]), undefined, BACK_ASKED],
    ["the other key was never in use", ledger([draining({ activeSince: undefined }), NEWER]), undefined, BACK_ASKED],
    ["another process has put it back", ledger([key({ putBackAt: NOW }), draining()]), undefined, BACK_ASKED],
    ["a key is on its way", ledger([draining(), NEWER, pending("stored")]), "recall ue-0", BACK_ASKED],
    ["it is decided, and the sinks have another", ledger([draining(), NEWER], { rollbackTo: "ue-0" }), "deliver ue-0"],
    [
      "it is decided, and every sink has it",
      ledger([draining({ deliveredTo: IN_FILE }), NEWER], { rollbackTo: "ue-0" }),
      "promote ue-0",
    ],
    [
      "it is decided, and a create was begun",
      ledger([draining(), NEWER, pending("intent")], { rollbackTo: "ue-0" }),
      "lose ue-new",
    ],
    [
      "it is decided, and a key is on its way",
      ledger([draining(), NEWER, pending("verified")], { rollbackTo: "ue-0" }),
      "abandon ue-new",
    ],
    ["it was decided and done", ledger([key(), draining({ intentId: "ue-2" })], { rollbackTo: "ue-1" }), undefined],
  ),
)("the previous key is asked for, and $name", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

test("without a previous key nothing is done, and that is said", () => {
  const plan = planRotation(JOB, ledger([key({ requestedAt: daysAgo(99) })]), NOW, { previousSince: NOW });
  expect(plan).toMatchObject({ next: undefined, blocked: "there is no previous key to put back" });
});

const DUE = key({ requestedAt: daysAgo(30) });

test.each([
  [FAILED_ATTEMPTS_MAX - 1, "create", undefined],
  [FAILED_ATTEMPTS_MAX, undefined, /^needs attention: 5 attempts failed, the last with: sink away; nothing is created/],
  [FAILED_ATTEMPTS_MAX + 1, undefined, /^needs attention: 6/],
])("after %i failures in a row the plan is %s", (failedAttempts, next, blocked) => {
  const plan = planRotation(JOB, ledger([DUE], { failedAttempts, lastError: "sink away" }), NOW);
  expect(plan.next?.kind).toBe(next);
  if (blocked) expect(plan.blocked).toMatch(blocked);
  else expect(plan.blocked).toBeUndefined();
});

test("what was made already is brought to its end however many attempts failed", () => {
  expect(nextOf(ledger([DUE, pending("verified")], { failedAttempts: 9 }))).toBe("deliver ue-new");
});

test("a person's wish for a fresh key is done however many attempts failed", () => {
  expect(nextOf(ledger([DUE], { failedAttempts: 9 }), NOW_ASKED)).toBe("create");
});

test("needing attention begins at the limit", () => {
  expect([4, 5, 6].map(needsAttention)).toEqual([false, true, true]);
});

test("with nothing to do it is said when the key is due", () => {
  const { idle } = planRotation(JOB, ledger([key({ requestedAt: daysAgo(2, 1) })]), NOW);
  expect(idle).toBe("the active key is 1 days old; due in 29 days");
});

test("every step has its reason", () => {
  const { next, cleanup } = planRotation(JOB, ledger([DUE, draining({ drainingSince: daysAgo(8) })]), NOW);
  expect(next?.reason).toBe("the active key is 30 days old, of at most 30");
  expect(cleanup.map(({ reason }) => reason)).toEqual(["it was replaced 8 days ago, of 7 of grace"]);
});
