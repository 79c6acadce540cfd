// As of the rest of the checker: each violation is found where it is planted.

import { expect, test } from "vitest";
import { type KeyEvidence, keyViolations } from "./check-keys.ts";

const key = (apiKeyId: string | null, state: string) => ({ apiKeyId, intentId: `intent-${apiKeyId}`, state });

const HEALED: KeyEvidence = {
  ledger: [key("key-1", "retired"), key("key-2", "draining"), key("key-3", "active")],
  existing: ["key-2", "key-3"],
  creates: ["exporter intent-key-1", "exporter intent-key-2", "exporter intent-key-3"],
  sinks: ["secret-3", "secret-3"],
};

test("where all holds, nothing is found", () => {
  expect(keyViolations(HEALED)).toEqual([]);
});

test("a key whose secret was lost is flagged, even where its id is not known", () => {
  const ledger = [...HEALED.ledger, key(null, "orphan")];
  const creates = [...HEALED.creates, "exporter intent-null"];
  expect(keyViolations({ ...HEALED, ledger, creates, existing: [...HEALED.existing, "key-4"] })).toEqual([]);
});

const PLANTED: Readonly<Record<string, Partial<KeyEvidence>>> = {
  "a create that was sent again": { creates: [...HEALED.creates, "exporter intent-key-3"] },
  "a create without an intent": { creates: [...HEALED.creates, "exporter"] },
  "no key in use": { ledger: HEALED.ledger.slice(0, 2), creates: HEALED.creates.slice(0, 2), existing: ["key-2"] },
  "two keys in use": { ledger: [key("key-1", "retired"), key("key-2", "active"), key("key-3", "active")] },
  "a key on its way": { ledger: [...HEALED.ledger, key(null, "pending")] },
  "a key that nobody knows": { existing: [...HEALED.existing, "key-4"] },
  "a retired key that works": { existing: [...HEALED.existing, "key-1"] },
  "a key in use that does not exist": { existing: ["key-3"] },
  "sinks with different keys": { sinks: ["secret-3", "secret-2"] },
};

test.each(Object.entries(PLANTED))("%s is found", (_, planted) => {
  expect(keyViolations({ ...HEALED, ...planted })).toHaveLength(1);
});
