import { expect, test } from "vitest";
import type { RotationConfig } from "../../src/config/rotations.ts";
import type { Ledger, LedgerKey } from "../../src/keys/plan.ts";
import { cleanupSteps } from "../../src/keys/plan.ts";
import { COMMAND, daysAgo, draining, FILE, IN_FILE, JOB, key, ledger, NOW, orphan, pending } from "./sample-ledger.ts";

const HOUR_MS = 60 * 60 * 1000;
const DELETE = { retire: "delete" } as const;
const DUE = { dueForRemovalAt: daysAgo(1) };
const REPLACED = [draining({ drainingSince: daysAgo(9) }), key()];
const FOUND = [orphan({ apiKeyId: "k" })];
const RESTORED = { rollbackTo: "ue-0" };

type Given = Partial<RotationConfig> & Pick<Partial<Ledger>, "rollbackTo">;
type Case = readonly [name: string, step: string | undefined, keys: readonly LedgerKey[], given?: Given];

function stepsOf(keys: readonly LedgerKey[], { rollbackTo = null, ...job }: Given = {}): string[] {
  const steps = cleanupSteps({ ...JOB, ...job }, ledger(keys, { rollbackTo }), NOW);
  return steps.map((step) => `${step.kind} ${step.key.intentId}`);
}

test.for<Case>([
  ["1 ms before the end of its grace period", undefined, [draining({ drainingSince: daysAgo(7, 1) }), key()]],
  ["exactly at the end of its grace period", "mark-due ue-0", [draining({ drainingSince: daysAgo(7) }), key()]],
  ["replaced just now", "mark-due ue-0", [draining({ drainingSince: NOW }), key()], { graceDays: 0 }],
  ["past its grace period", "mark-due ue-0", REPLACED],
  ["past its grace period, no key is active", undefined, REPLACED.slice(0, 1)],
  ["past its grace period, to be restored", undefined, REPLACED, RESTORED],
  ["due, with retire keep", "recheck ue-0", [draining(DUE), key()]],
  ["due", "delete ue-0", [draining(DUE), key()], DELETE],
  ["due, still in a sink", "recheck ue-0", [draining({ ...DUE, deliveredTo: IN_FILE }), key()], DELETE],
  [
    ...(["due, still in one of two sinks", "recheck ue-0"] as const),
    [draining({ ...DUE, deliveredTo: IN_FILE }), key()],
    { ...DELETE, deliver: [FILE, COMMAND] },
  ],
  ["due, in a sink of before", "delete ue-0", [draining({ ...DUE, deliveredTo: ["file /gone"] }), key()], DELETE],
  ["due, no active key", undefined, [draining(DUE)], DELETE],
  ["due, to be restored", undefined, [draining(DUE), key()], { ...DELETE, ...RESTORED }],
  ["an orphan whose API key id is not known", "search ue-lost", [orphan()]],
  ["an orphan whose API key id was found, with retire keep", "recheck ue-lost", FOUND],
  ["an orphan whose API key id was found, with no active key", "delete ue-lost", FOUND, DELETE],
  ["active", undefined, [key({ requestedAt: daysAgo(999), activeSince: daysAgo(999) })], { ...DELETE, graceDays: 0 }],
  ["due for removal by mistake, and active", undefined, [key(DUE)], DELETE],
  ["pending", undefined, [key(), pending("stored", { requestedAt: daysAgo(99) })], DELETE],
])("the cleanup of a key that is %s is %s", ([_, step, keys, given]) => {
  expect(stepsOf(keys, given)).toEqual(step === undefined ? [] : [step]);
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
