// check-keys.ts finds each planted violation, and nothing in correct evidence.

import { expect, test } from "vitest";
import { type KeyEvidence, keyViolations, orphansOf } from "./check-keys.ts";

const key = (name: string, state: string, { apiKeyId = `id-${name}` as string | null, events = ["active"] } = {}) => ({
  apiKeyId,
  intentId: `intent-${name}`,
  state,
  events,
});
const made = (name: string, works = true) => ({ apiKeyId: `id-${name}`, comment: `exporter intent-${name}`, works });

const RECOVERED: KeyEvidence = {
  ledger: [key("1", "retired"), key("2", "draining"), key("3", "active")],
  made: [made("1", false), made("2"), made("3")],
  creates: ["exporter intent-1", "exporter intent-2", "exporter intent-3"],
  due: 3,
  sinks: ["secret-3", "secret-3"],
};

/** The answer to one more create was lost. */
const LOST: KeyEvidence = {
  ...RECOVERED,
  ledger: [...RECOVERED.ledger, key("4", "orphan", { apiKeyId: null, events: ["intent", "orphan"] })],
  made: [...RECOVERED.made, made("4")],
  creates: [...RECOVERED.creates, "exporter intent-4"],
};

test("correct evidence has no violations", () => {
  expect(keyViolations(RECOVERED)).toEqual([]);
  expect(orphansOf(RECOVERED)).toEqual([]);
});

test("an orphan counts as flagged even if the ledger does not have its id", () => {
  expect(keyViolations(LOST)).toEqual([]);
  expect(orphansOf(LOST)).toEqual([{ apiKeyId: "id-4", flagged: true }]);
});

const [retired, draining, active] = RECOVERED.ledger;
const withoutOrphan = [...RECOVERED.ledger, key("4", "retired", { events: ["intent", "not-created"] })];

const PLANTED: Readonly<Record<string, Partial<KeyEvidence>>> = {
  "a create that was sent again": { creates: [...RECOVERED.creates, "exporter intent-3"] },
  "a create without an intent": { creates: [...RECOVERED.creates, "exporter"] },
  "a key that was not due": { due: 2 },
  "a key that was due and not made": { due: 4 },
  "two active keys": { ledger: [retired, key("2", "active"), active].filter((one) => one !== undefined) },
  "a pending key": { ledger: [...RECOVERED.ledger, key("5", "pending")] },
  "a lost key that nothing flags": { ...LOST, ledger: withoutOrphan, made: [...RECOVERED.made, made("4", false)] },
  "a retired key that works": { made: RECOVERED.made.map((one) => ({ ...one, works: true })) },
  "a key in use that does not exist": { made: [made("1", false), made("2", false), made("3")] },
  "sinks with different keys": { sinks: ["secret-3", "secret-2"] },
  "no active key": { ledger: [retired, draining, key("3", "draining")].filter((one) => one !== undefined) },
};

test.each(Object.entries(PLANTED))("%s is found", (_, planted) => {
  expect(keyViolations({ ...RECOVERED, ...planted })).toHaveLength(1);
});
