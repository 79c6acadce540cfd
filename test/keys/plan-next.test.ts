import { expect, test } from "vitest";
import type { Ledger } from "../../src/keys/ledger.ts";
import { nextStep, type RotationRequest } from "../../src/keys/plan.ts";
import type { RotationJob } from "../../src/keys/policy.ts";
import { COMMAND, daysAgo, draining, FILE, IN_FILE, JOB, key, ledger, NOW, orphan, pending } from "./sample-ledger.ts";

type Given = { readonly job?: Partial<RotationJob>; readonly request?: RotationRequest };
type Case = readonly [name: string, ledger: Ledger, next: string | undefined, given?: Given];

function cases(...rows: readonly Case[]) {
  return rows.map(([name, state, next, given]) => ({ name, state, next, given }));
}

/** The next step and the key it is about, in words. */
function nextOf(state: Ledger, { job, request }: Given = {}): string | undefined {
  const next = nextStep({ ...JOB, ...job }, state, NOW, request ?? {});
  return next && ("key" in next ? `${next.kind} ${next.key.intentId}` : next.kind);
}

const NOW_ASKED = { request: { freshRequestedAt: NOW } };
const BACK_ASKED = { request: { previousRequestedAt: NOW } };

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
    ["it may have been asked for", ledger([key(), pending("intent")]), "mark-orphan ue-new"],
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
  const next = nextStep(job, ledger([key(), pending("verified", { deliveredTo: IN_FILE })]), NOW, {});
  expect(next).toMatchObject({ kind: "deliver", sinks: [COMMAND] });
});

test.each(
  cases(
    ["a sink was added", ledger([key({ deliveredTo: [] })]), "deliver ue-1"],
    ["a sink was added and the key is due", ledger([key({ deliveredTo: [], requestedAt: daysAgo(30) })]), "create"],
    ["a sink was taken away", ledger([key()]), undefined, { job: { deliver: [] } }],
    ["earlier attempts failed and nothing is left to do", ledger([key()], { failedAttempts: 1 }), "recover"],
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
    ["the key in use is older than the request", ledger([key()]), "create", NOW_ASKED],
    ["the key in use is as old as the request", ledger([key({ activeSince: NOW })]), undefined, NOW_ASKED],
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
      "a key made for this request has failed",
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
    ["there is one", ledger([draining(), NEWER]), "restore ue-0", BACK_ASKED],
    [
      "there are two",
      ledger([draining({ intentId: "ue-a", requestedAt: daysAgo(60) }), draining(), NEWER]),
      "restore ue-0",
      BACK_ASKED,
    ],
    ["the other key is newer", ledger([key(), draining({ requestedAt: daysAgo(0) })]), undefined, BACK_ASKED],
    ["the other key was never in use", ledger([draining({ activeSince: undefined }), NEWER]), undefined, BACK_ASKED],
    ["another process has put it back", ledger([key({ putBackAt: NOW }), draining()]), undefined, BACK_ASKED],
    ["a key is on its way", ledger([draining(), NEWER, pending("stored")]), "restore ue-0", BACK_ASKED],
    ["it is decided, and the sinks have another", ledger([draining(), NEWER], { rollbackTo: "ue-0" }), "deliver ue-0"],
    [
      "it is decided, and every sink has it",
      ledger([draining({ deliveredTo: IN_FILE }), NEWER], { rollbackTo: "ue-0" }),
      "promote ue-0",
    ],
    [
      "it is decided, and a create was begun",
      ledger([draining(), NEWER, pending("intent")], { rollbackTo: "ue-0" }),
      "mark-orphan ue-new",
    ],
    [
      "it is decided, and a key is on its way",
      ledger([draining(), NEWER, pending("verified")], { rollbackTo: "ue-0" }),
      "abandon ue-new",
    ],
    [
      "it is decided, and then a fresh key was asked for",
      ledger([draining(), NEWER], { rollbackTo: "ue-0" }),
      "create",
      NOW_ASKED,
    ],
    ["it was decided and done", ledger([key(), draining({ intentId: "ue-2" })], { rollbackTo: "ue-1" }), undefined],
  ),
)("the previous key is asked for, and $name", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});
