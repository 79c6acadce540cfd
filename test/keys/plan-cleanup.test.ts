import { expect, test } from "vitest";
import type { Ledger } from "../../src/keys/ledger.ts";
import { cleanupSteps } from "../../src/keys/plan.ts";
import type { RotationJob } from "../../src/keys/policy.ts";
import { daysAgo, draining, IN_FILE, JOB, key, ledger, NOW, orphan, pending } from "./sample-ledger.ts";

const HOUR_MS = 60 * 60 * 1000;
const DELETE = { retire: "delete" } as const;
const DUE = { dueForRemovalAt: daysAgo(1) };

function stepsOf(state: Ledger, job: Partial<RotationJob> = {}): string[] {
  return cleanupSteps({ ...JOB, ...job }, state, NOW).map((step) => `${step.kind} ${step.key.intentId}`);
}

type Case = readonly [name: string, ledger: Ledger, steps: readonly string[], job?: Partial<RotationJob>];

function cases(...rows: readonly Case[]) {
  return rows.map(([name, state, steps, job]) => ({ name, state, steps, job }));
}

test.each(
  cases(
    ["inside its grace by a moment", ledger([draining({ drainingSince: daysAgo(7, 1) }), key()]), []],
    ["exactly at the end of its grace", ledger([draining({ drainingSince: daysAgo(7) }), key()]), ["mark-due ue-0"]],
    ["past its grace by a moment", ledger([draining({ drainingSince: daysAgo(7, -1) }), key()]), ["mark-due ue-0"]],
    [
      "replaced just now, without any grace",
      ledger([draining({ drainingSince: NOW }), key()]),
      ["mark-due ue-0"],
      { graceDays: 0 },
    ],
    ["past its grace, and nothing is in use", ledger([draining({ drainingSince: daysAgo(9) })]), []],
    [
      "past its grace, and wanted back",
      ledger([draining({ drainingSince: daysAgo(9) }), key()], { rollbackTo: "ue-0" }),
      [],
    ],
    ["due, and to be kept", ledger([draining(DUE), key()]), ["recheck ue-0"]],
    ["due, and to be deleted", ledger([draining(DUE), key()]), ["delete ue-0"], DELETE],
    [
      "due and to be deleted, and a sink still has it",
      ledger([draining({ ...DUE, deliveredTo: IN_FILE }), key()]),
      ["recheck ue-0"],
      DELETE,
    ],
    [
      "due and to be deleted, and only a sink that is no longer configured has it",
      ledger([draining({ ...DUE, deliveredTo: ["file /gone"] }), key()]),
      ["delete ue-0"],
      DELETE,
    ],
    ["due and to be deleted, and nothing is in use", ledger([draining(DUE)]), [], DELETE],
    ["due and to be deleted, and wanted back", ledger([draining(DUE), key()], { rollbackTo: "ue-0" }), [], DELETE],
  ),
)("a replaced key that is $name", ({ state, steps, job }) => {
  expect(stepsOf(state, job)).toEqual(steps);
});

test.each(
  cases(
    [
      "in use",
      ledger([key({ requestedAt: daysAgo(999), activeSince: daysAgo(999) })]),
      [],
      { ...DELETE, graceDays: 0 },
    ],
    ["due for removal by mistake, and in use", ledger([key(DUE)]), [], DELETE],
    ["on its way", ledger([key(), pending("stored", { requestedAt: daysAgo(99) })]), [], DELETE],
  ),
)("nothing is done to a key that is $name", ({ state, steps, job }) => {
  expect(stepsOf(state, job)).toEqual(steps);
});

test.each(
  cases(
    ["is not known", ledger([orphan()]), ["search ue-lost"]],
    ["is not known, and stands in no comment", ledger([orphan({ comment: "usage exporter" })]), []],
    ["was found, and keys are kept", ledger([orphan({ apiKeyId: "k" })]), ["recheck ue-lost"]],
    ["was found, and keys are deleted", ledger([orphan({ apiKeyId: "k" })]), ["delete ue-lost"], DELETE],
    ["was found while nothing is in use", ledger([orphan({ apiKeyId: "k" })]), ["delete ue-lost"], DELETE],
  ),
)("an orphan whose id $name", ({ state, steps, job }) => {
  expect(stepsOf(state, job)).toEqual(steps);
});

test.each([
  ["an hour ago", HOUR_MS, false],
  ["a moment more than an hour ago", HOUR_MS + 1, true],
])("a key that was asked for %s and is in no list", (_, agoMs, giveUp) => {
  const state = ledger([orphan({ requestedAt: new Date(NOW.getTime() - agoMs) })]);
  expect(cleanupSteps(JOB, state, NOW)).toMatchObject([{ kind: "search", giveUp }]);
});

test("each key of the past has its own step", () => {
  const state = ledger([draining(DUE), draining({ intentId: "ue-a", drainingSince: daysAgo(8) }), key(), orphan()]);
  expect(stepsOf(state)).toEqual(["recheck ue-0", "mark-due ue-a", "search ue-lost"]);
});
