import { expect, test } from "vitest";
import type { RotationConfig } from "../../src/config/rotations.ts";
import type { Ledger, LedgerKey } from "../../src/keys/plan.ts";
import { nextStep, type RotationRequest } from "../../src/keys/plan.ts";
import { COMMAND, daysAgo, draining, FILE, IN_FILE, JOB, key, ledger, NOW, orphan, pending } from "./sample-ledger.ts";

type Given = Partial<Ledger> & { readonly job?: Partial<RotationConfig>; readonly wants?: RotationRequest["wants"] };
type Case = readonly [name: string, next: string | undefined, keys: readonly LedgerKey[], given?: Given];

/** Expects the next step and its key, as in "deliver ue-1". */
function expectNext([_, expected, keys, { job, wants, ...rest } = {}]: Case): void {
  const next = nextStep({ ...JOB, ...job }, ledger(keys, rest), NOW, wants && { wants, at: NOW });
  expect(next && ("key" in next ? `${next.kind} ${next.key.intentId}` : next.kind)).toBe(expected);
}

const FAILED = { failedAttempts: 1 };

test.for<Case>([
  ["there is no key", "create", []],
  ["there are only orphans", "create", [orphan()]],
  ["there is only a draining key", "create", [draining()]],
  ["the key is 1 ms younger than maxAgeDays", undefined, [key({ requestedAt: daysAgo(30, 1) })]],
  ["the key is exactly maxAgeDays old", "create", [key({ requestedAt: daysAgo(30) })]],
  ["the key was requested maxAgeDays ago", "create", [key({ requestedAt: daysAgo(30), activeSince: daysAgo(2) })]],
  ["a key was restored later", undefined, [key({ requestedAt: daysAgo(90), rollbackAt: daysAgo(30, 1) })]],
  ["a key was restored maxAgeDays ago", "create", [key({ requestedAt: daysAgo(90), rollbackAt: daysAgo(30) })]],
  ["the key expires in graceDays and 1 ms", undefined, [key({ expiresAt: daysAgo(-7, 1) })]],
  ["the key expires in exactly graceDays", "create", [key({ expiresAt: daysAgo(-7) })]],
  ["the key has expired", "create", [key({ expiresAt: daysAgo(1) })]],
])("if %s, the next step is %s", expectNext);

test.for<Case>([
  ["may have been created", "mark-orphan ue-new", [key(), pending("intent")]],
  ["is stored", "verify ue-new", [key(), pending("stored")]],
  ["is stored and an attempt failed", "verify ue-new", [key(), pending("stored")], FAILED],
  ["works and no sink has it", "deliver ue-new", [key(), pending("verified")]],
  ["works and every sink has it", "promote ue-new", [key(), pending("verified", { deliveredTo: IN_FILE })]],
  ["works and there is no sink", "promote ue-new", [key(), pending("verified")], { job: { deliver: [] } }],
  ["is stored while the active one is due", "verify ue-new", [key({ requestedAt: daysAgo(60) }), pending("stored")]],
])("if a pending key %s, the next step is %s", expectNext);

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

const UNDELIVERED = { deliveredTo: [] };

test.for<Case>([
  ["a sink was added", "deliver ue-1", [key(UNDELIVERED)]],
  ["a sink was added and the key is due", "create", [key({ ...UNDELIVERED, requestedAt: daysAgo(30) })]],
  ["a sink was removed", undefined, [key()], { job: { deliver: [] } }],
  ["an attempt failed and nothing is left", "recover", [key()], FAILED],
  ["an attempt failed and a sink lacks it", "deliver ue-1", [key(UNDELIVERED)], FAILED],
])("if %s, the next step for the active key is %s", expectNext);

const EARLIER = { requestedAt: daysAgo(1) };
const FRESH = { wants: "fresh" } as const;
const FRESH_AGAIN = { ...FRESH, ...FAILED } as const;

test.for<Case>([
  ["the active key is older than that", "create", [key()], FRESH],
  ["the active key is exactly as old", undefined, [key({ activeSince: NOW })], FRESH],
  ["a key is pending", "verify ue-new", [key(), pending("stored", EARLIER)], FRESH],
  ["a pending key has failed before", "abandon ue-new", [key(), pending("stored", EARLIER)], FRESH_AGAIN],
  ["a key made for it has failed", "verify ue-new", [key(), pending("stored", { requestedAt: NOW })], FRESH_AGAIN],
  ["a delivery of a pending key failed", "deliver ue-new", [key(), pending("verified", EARLIER)], FRESH_AGAIN],
])("if a fresh key is requested and %s, the next step is %s", expectNext);

const NEWER = key({ intentId: "ue-2" });
const OLDER = draining({ intentId: "ue-a", requestedAt: daysAgo(60) });
const PREVIOUS = { wants: "previous" } as const;
const RECORDED = { rollbackTo: "ue-0" };

test.for<Case>([
  ["there is one draining key", "rollback ue-0", [draining(), NEWER], PREVIOUS],
  ["there are two draining keys", "rollback ue-0", [OLDER, draining(), NEWER], PREVIOUS],
  ["the draining key is newer", undefined, [key(), draining({ requestedAt: daysAgo(0) })], PREVIOUS],
  ["the draining key was never active", undefined, [draining({ activeSince: null }), NEWER], PREVIOUS],
  ["the replaced key was retired", undefined, [{ ...draining(), state: "retired" }, NEWER], PREVIOUS],
  ["no key is active", undefined, [draining()], PREVIOUS],
  [
    "a person rolled back to the key in use",
    "rollback ue-0",
    [draining(), { ...NEWER, rollbackAt: daysAgo(1) }],
    PREVIOUS,
  ],
  ["another process has rolled back already", undefined, [key({ rollbackAt: NOW }), draining()], PREVIOUS],
  ["another key is pending", "rollback ue-0", [draining(), NEWER, pending("stored")], PREVIOUS],
  ["recorded, the sinks have another key", "deliver ue-0", [draining(), NEWER], RECORDED],
  ["recorded, every sink has that key", "promote ue-0", [draining({ deliveredTo: IN_FILE }), NEWER], RECORDED],
  ["recorded, a create was begun", "mark-orphan ue-new", [draining(), NEWER, pending("intent")], RECORDED],
  ["recorded, another key is pending", "abandon ue-new", [draining(), NEWER, pending("verified")], RECORDED],
  ["recorded, then a fresh key was requested", "create", [draining(), NEWER], { ...RECORDED, ...FRESH }],
  ["recorded and done", undefined, [key(), draining({ intentId: "ue-2" })], { rollbackTo: "ue-1" }],
])("if the previous key is requested and %s, the next step is %s", expectNext);
