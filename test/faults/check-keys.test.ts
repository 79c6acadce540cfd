// As of the rest of the checker: each violation is found where it is planted.

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

/** The answer to a create was lost, and another one followed. */
const LOST: KeyEvidence = {
  ...RECOVERED,
  ledger: [...RECOVERED.ledger, key("4", "orphan", { apiKeyId: null, events: ["intent", "orphan"] })],
  made: [...RECOVERED.made, made("4")],
  creates: [...RECOVERED.creates, "exporter intent-4"],
};

test("where all holds, nothing is found", () => {
  expect(keyViolations(RECOVERED)).toEqual([]);
  expect(orphansOf(RECOVERED)).toEqual([]);
});

test("a key whose secret was lost is flagged, even where its id is not known", () => {
  expect(keyViolations(LOST)).toEqual([]);
  expect(orphansOf(LOST)).toEqual([{ apiKeyId: "id-4", flagged: true }]);
});

const [retired, draining, active] = RECOVERED.ledger;
const lostUntold = [...RECOVERED.ledger, key("4", "retired", { events: ["intent", "not-created"] })];

const PLANTED: Readonly<Record<string, Partial<KeyEvidence>>> = {
  "a create that was sent again": { creates: [...RECOVERED.creates, "exporter intent-3"] },
  "a create without an intent": { creates: [...RECOVERED.creates, "exporter"] },
  "a key that was not due": { due: 2 },
  "a key that was due and not made": { due: 4 },
  "two keys in use": { ledger: [retired, key("2", "active"), active].filter((one) => one !== undefined) },
  "a key on its way": { ledger: [...RECOVERED.ledger, key("5", "pending")] },
  "a lost key that nothing flags": { ...LOST, ledger: lostUntold, made: [...RECOVERED.made, made("4", false)] },
  "a retired key that works": { made: RECOVERED.made.map((one) => ({ ...one, works: true })) },
  "a key in use that does not exist": { made: [made("1", false), made("2", false), made("3")] },
  "sinks with different keys": { sinks: ["secret-3", "secret-2"] },
  "no key in use": { ledger: [retired, draining, key("3", "draining")].filter((one) => one !== undefined) },
};

test.each(Object.entries(PLANTED))("%s is found", (_, planted) => {
  expect(keyViolations({ ...RECOVERED, ...planted })).toHaveLength(1);
});
