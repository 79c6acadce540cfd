// The part of the checker that is about keys: what the service has, what the ledger knows, and what the sinks hold. Pure.

export type KeyEvidence = {
  readonly ledger: readonly LedgerKey[];
  /** The ids of the keys that were created and still work, at the service. */
  readonly existing: readonly string[];
  /** The comments of all creates that were sent. */
  readonly creates: readonly string[];
  /** What each sink holds. */
  readonly sinks: readonly string[];
};

type LedgerKey = { readonly apiKeyId: string | null; readonly intentId: string; readonly state: string };

const IN_USE = ["active", "draining"];

/** What does not hold of a rotation that came to its end; nothing where all does. */
export function keyViolations({ ledger, existing, creates, sinks }: KeyEvidence): readonly string[] {
  const known = new Set(ledger.filter(({ state }) => state !== "retired").flatMap(({ apiKeyId }) => apiKeyId ?? []));
  const inUse = ledger.filter(({ state }) => IN_USE.includes(state));
  const count = (state: string) => ledger.filter((key) => key.state === state).length;
  const untold = existing.filter((id) => !known.has(id));
  // An orphan's id may not be known; it can be found by its intent, which stands in the key's comment.
  const flagged = ledger.filter(({ state, apiKeyId }) => state === "orphan" && apiKeyId === null);
  const checks: readonly (readonly [boolean, string])[] = [
    [new Set(creates).size === creates.length, "a create was sent twice for one intent"],
    [creates.every((comment) => ledger.some(({ intentId }) => comment.includes(intentId))), "a create is of no intent"],
    [count("active") === 1, `${count("active")} keys are in use, and not one`],
    [count("pending") === 0, "a key is still on its way"],
    [untold.length <= flagged.length, `the service has keys that nothing flags: ${untold.join(", ")}`],
    [inUse.every(({ apiKeyId }) => apiKeyId !== null && existing.includes(apiKeyId)), "a key in use does not exist"],
    [new Set(sinks).size <= 1, "the sinks hold different keys"],
  ];
  return checks.filter(([holds]) => !holds).map(([, violation]) => `I7: ${violation}`);
}
