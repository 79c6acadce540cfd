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

/** The next step and its key, as in "deliver ue-1". */
function nextOf(state: Ledger, { job, request }: Given = {}): string | undefined {
  const next = nextStep({ ...JOB, ...job }, state, NOW, request);
  return next && ("key" in next ? `${next.kind} ${next.key.intentId}` : next.kind);
}

const FRESH_REQUESTED = { request: { wants: "fresh", at: NOW } } as const;
const ROLLBACK_REQUESTED = { request: { wants: "previous", at: NOW } } as const;

test.each(
  cases(
    ["there is no key", ledger([]), "create"],
    ["there are only orphans", ledger([orphan()]), "create"],
    ["there is only a draining key", ledger([draining()]), "create"],
    ["the key is 1 ms younger than maxAgeDays", ledger([key({ requestedAt: daysAgo(30, 1) })]), undefined],
    ["the key is exactly maxAgeDays old", ledger([key({ requestedAt: daysAgo(30) })]), "create"],
    ["the key is 1 ms older than maxAgeDays", ledger([key({ requestedAt: daysAgo(30, -1) })]), "create"],
    [
      "the key was requested maxAgeDays ago",
      ledger([key({ requestedAt: daysAgo(30), activeSince: daysAgo(2) })]),
      "create",
    ],
    [
      "a key was restored maxAgeDays - 1 ms ago",
      ledger([key({ requestedAt: daysAgo(90), rollbackAt: daysAgo(30, 1) })]),
      undefined,
    ],
    [
      "a key was restored maxAgeDays ago",
      ledger([key({ requestedAt: daysAgo(90), rollbackAt: daysAgo(30) })]),
      "create",
    ],
    ["the key expires in graceDays and 1 ms", ledger([key({ expiresAt: daysAgo(-7, 1) })]), undefined],
    ["the key expires in exactly graceDays", ledger([key({ expiresAt: daysAgo(-7) })]), "create"],
    ["the key has expired", ledger([key({ expiresAt: daysAgo(1) })]), "create"],
  ),
)("if $name, the next step is $next", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

test.each(
  cases(
    ["may have been created", ledger([key(), pending("intent")]), "mark-orphan ue-new"],
    ["is stored", ledger([key(), pending("stored")]), "verify ue-new"],
    ["is stored and an attempt failed", ledger([key(), pending("stored")], { failedAttempts: 1 }), "verify ue-new"],
    ["works and no sink has it", ledger([key(), pending("verified")]), "deliver ue-new"],
    [
      "works and one of two sinks has it",
      ledger([key(), pending("verified", { deliveredTo: IN_FILE })]),
      "deliver ue-new",
      { job: { deliver: [FILE, COMMAND] } },
    ],
    ["works and every sink has it", ledger([key(), pending("verified", { deliveredTo: IN_FILE })]), "promote ue-new"],
    ["works and there is no sink", ledger([key(), pending("verified")]), "promote ue-new", { job: { deliver: [] } }],
    [
      "is stored while the active key is due",
      ledger([key({ requestedAt: daysAgo(60) }), pending("stored")]),
      "verify ue-new",
    ],
  ),
)("if a pending key $name, the next step is $next", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

test("a key in use that the service refuses is replaced, with the refusal as the reason", () => {
  const step = nextStep(JOB, ledger([key()]), NOW, undefined, { refusal: "refused (401)" });
  expect(step).toEqual({ kind: "create", reason: "refused (401)" });
});

test("a key in use is delivered again to a sink that lost it, and the reason says what is wrong with the sink", () => {
  const stale = new Map([["file /run/exporter.key", "the file is gone"]]);
  const step = nextStep({ ...JOB, deliver: [FILE, COMMAND] }, ledger([key()]), NOW, undefined, { stale });
  expect(step).toMatchObject({ kind: "deliver", sinks: [FILE, COMMAND] });
  expect(step?.reason).toContain("the file is gone");
});

test("a delivery goes only to the sinks that do not have the key", () => {
  const job = { ...JOB, deliver: [FILE, COMMAND] };
  const next = nextStep(job, ledger([key(), pending("verified", { deliveredTo: IN_FILE })]), NOW);
  expect(next).toMatchObject({ kind: "deliver", sinks: [COMMAND] });
});

test.each(
  cases(
    ["a sink was added", ledger([key({ deliveredTo: [] })]), "deliver ue-1"],
    ["a sink was added and the key is due", ledger([key({ deliveredTo: [], requestedAt: daysAgo(30) })]), "create"],
    ["a sink was removed", ledger([key()]), undefined, { job: { deliver: [] } }],
    ["an attempt failed and nothing is left", ledger([key()], { failedAttempts: 1 }), "recover"],
    [
      "an attempt failed and a sink lacks it",
      ledger([key({ deliveredTo: [] })], { failedAttempts: 1 }),
      "deliver ue-1",
    ],
  ),
)("if $name, the next step for the active key is $next", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

test.each(
  cases(
    ["the active key is older than that", ledger([key()]), "create", FRESH_REQUESTED],
    ["the active key is exactly as old", ledger([key({ activeSince: NOW })]), undefined, FRESH_REQUESTED],
    [
      "a key is pending",
      ledger([key(), pending("stored", { requestedAt: daysAgo(1) })]),
      "verify ue-new",
      FRESH_REQUESTED,
    ],
    [
      "a pending key has failed before",
      ledger([key(), pending("stored", { requestedAt: daysAgo(1) })], { failedAttempts: 1 }),
      "abandon ue-new",
      FRESH_REQUESTED,
    ],
    [
      "a key made for this request has failed",
      ledger([key(), pending("stored", { requestedAt: NOW })], { failedAttempts: 1 }),
      "verify ue-new",
      FRESH_REQUESTED,
    ],
    [
      "a pending key's delivery failed before",
      ledger([key(), pending("verified", { requestedAt: daysAgo(1) })], { failedAttempts: 1 }),
      "deliver ue-new",
      FRESH_REQUESTED,
    ],
  ),
)("if a fresh key is requested and $name, the next step is $next", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});

const NEWER = key({ intentId: "ue-2" });

test.each(
  cases(
    ["there is one draining key", ledger([draining(), NEWER]), "rollback ue-0", ROLLBACK_REQUESTED],
    [
      "there are two draining keys",
      ledger([draining({ intentId: "ue-a", requestedAt: daysAgo(60) }), draining(), NEWER]),
      "rollback ue-0",
      ROLLBACK_REQUESTED,
    ],
    [
      "the draining key is newer",
      ledger([key(), draining({ requestedAt: daysAgo(0) })]),
      undefined,
      ROLLBACK_REQUESTED,
    ],
    [
      "the draining key was never active",
      ledger([draining({ activeSince: null }), NEWER]),
      undefined,
      ROLLBACK_REQUESTED,
    ],
    [
      "the replaced key was retired",
      ledger([{ ...draining(), state: "retired" }, NEWER]),
      undefined,
      ROLLBACK_REQUESTED,
    ],
    ["no key is active", ledger([draining()]), undefined, ROLLBACK_REQUESTED],
    [
      "the key in use was put back before that",
      ledger([draining(), key({ intentId: "ue-2", rollbackAt: daysAgo(1) })]),
      "rollback ue-0",
      ROLLBACK_REQUESTED,
    ],
    [
      "another process has restored it already",
      ledger([key({ rollbackAt: NOW }), draining()]),
      undefined,
      ROLLBACK_REQUESTED,
    ],
    ["another key is pending", ledger([draining(), NEWER, pending("stored")]), "rollback ue-0", ROLLBACK_REQUESTED],
    ["recorded, the sinks have another key", ledger([draining(), NEWER], { rollbackTo: "ue-0" }), "deliver ue-0"],
    [
      "recorded, every sink has that key",
      ledger([draining({ deliveredTo: IN_FILE }), NEWER], { rollbackTo: "ue-0" }),
      "promote ue-0",
    ],
    [
      "recorded, a create was begun",
      ledger([draining(), NEWER, pending("intent")], { rollbackTo: "ue-0" }),
      "mark-orphan ue-new",
    ],
    [
      "recorded, another key is pending",
      ledger([draining(), NEWER, pending("verified")], { rollbackTo: "ue-0" }),
      "abandon ue-new",
    ],
    [
      "recorded, then a fresh key was requested",
      ledger([draining(), NEWER], { rollbackTo: "ue-0" }),
      "create",
      FRESH_REQUESTED,
    ],
    ["recorded and done", ledger([key(), draining({ intentId: "ue-2" })], { rollbackTo: "ue-1" }), undefined],
  ),
)("if the previous key is requested and $name, the next step is $next", ({ state, next, given }) => {
  expect(nextOf(state, given)).toBe(next);
});
