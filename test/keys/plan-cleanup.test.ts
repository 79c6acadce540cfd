import { expect, test } from "vitest";
import type { Ledger } from "../../src/keys/ledger.ts";
import { cleanupSteps } from "../../src/keys/plan.ts";
import type { RotationJob } from "../../src/keys/policy.ts";
import { COMMAND, daysAgo, draining, FILE, IN_FILE, JOB, key, ledger, NOW, orphan, pending } from "./sample-ledger.ts";

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
    ["1 ms before the end of its grace period", ledger([draining({ drainingSince: daysAgo(7, 1) }), key()]), []],
    [
      "exactly at the end of its grace period",
      ledger([draining({ drainingSince: daysAgo(7) }), key()]),
      ["mark-due ue-0"],
    ],
    ["1 ms past its grace period", ledger([draining({ drainingSince: daysAgo(7, -1) }), key()]), ["mark-due ue-0"]],
    [
      "replaced just now, with graceDays 0",
      ledger([draining({ drainingSince: NOW }), key()]),
      ["mark-due ue-0"],
      { graceDays: 0 },
    ],
    ["past its grace period, no key is active", ledger([draining({ drainingSince: daysAgo(9) })]), []],
    [
      "past its grace period, to be restored",
      ledger([draining({ drainingSince: daysAgo(9) }), key()], { rollbackTo: "ue-0" }),
      [],
    ],
    ["due, with retire keep", ledger([draining(DUE), key()]), ["recheck ue-0"]],
    ["due, with retire delete", ledger([draining(DUE), key()]), ["delete ue-0"], DELETE],
    [
      "due, with retire delete, still in a sink",
      ledger([draining({ ...DUE, deliveredTo: IN_FILE }), key()]),
      ["recheck ue-0"],
      DELETE,
    ],
    [
      "due, with retire delete, still in one of two sinks",
      ledger([draining({ ...DUE, deliveredTo: IN_FILE }), key()]),
      ["recheck ue-0"],
      { ...DELETE, deliver: [FILE, COMMAND] },
    ],
    [
      "due, with retire delete, only in a sink that is not configured any more",
      ledger([draining({ ...DUE, deliveredTo: ["file /gone"] }), key()]),
      ["delete ue-0"],
      DELETE,
    ],
    ["due, with retire delete, no active key", ledger([draining(DUE)]), [], DELETE],
    ["due, with retire delete, to be restored", ledger([draining(DUE), key()], { rollbackTo: "ue-0" }), [], DELETE],
  ),
)("the cleanup of a replaced key that is $name is $steps", ({ state, steps, job }) => {
  expect(stepsOf(state, job)).toEqual(steps);
});

test.each(
  cases(
    [
      "active",
      ledger([key({ requestedAt: daysAgo(999), activeSince: daysAgo(999) })]),
      [],
      { ...DELETE, graceDays: 0 },
    ],
    ["due for removal by mistake, and active", ledger([key(DUE)]), [], DELETE],
    ["pending", ledger([key(), pending("stored", { requestedAt: daysAgo(99) })]), [], DELETE],
  ),
)("nothing is done to a key that is $name", ({ state, steps, job }) => {
  expect(stepsOf(state, job)).toEqual(steps);
});

test.each(
  cases(
    ["whose API key id is not known", ledger([orphan()]), ["search ue-lost"]],
    ["whose API key id was found, with retire keep,", ledger([orphan({ apiKeyId: "k" })]), ["recheck ue-lost"]],
    [
      "whose API key id was found, with retire delete,",
      ledger([orphan({ apiKeyId: "k" })]),
      ["delete ue-lost"],
      DELETE,
    ],
    [
      "whose API key id was found, with retire delete and no active key,",
      ledger([orphan({ apiKeyId: "k" })]),
      ["delete ue-lost"],
      DELETE,
    ],
  ),
)("the cleanup of an orphan $name is $steps", ({ state, steps, job }) => {
  expect(stepsOf(state, job)).toEqual(steps);
});

test.each([
  ["is repeated until an hour after its request", HOUR_MS, false],
  ["is given up after more than an hour", HOUR_MS + 1, true],
])("the search for an orphan %s", (_, agoMs, giveUp) => {
  const state = ledger([orphan({ requestedAt: new Date(NOW.getTime() - agoMs) })]);
  expect(cleanupSteps(JOB, state, NOW)).toMatchObject([{ kind: "search", giveUp }]);
});

test("each replaced or lost key has its own step", () => {
  const state = ledger([draining(DUE), draining({ intentId: "ue-a", drainingSince: daysAgo(8) }), key(), orphan()]);
  expect(stepsOf(state)).toEqual(["recheck ue-0", "mark-due ue-a", "search ue-lost"]);
});
