// The part of the checker that is about keys: what the service has, what the ledger knows, and what the sinks hold. Pure.

export type KeyEvidence = {
  readonly ledger: readonly LedgerKey[];
  /** All keys that the service ever made. */
  readonly made: readonly MadeKey[];
  /** The comments of all creates that were sent. */
  readonly creates: readonly string[];
  /** How many keys had to be made. */
  readonly due: number;
  /** What each sink holds. */
  readonly sinks: readonly string[];
};

type LedgerKey = {
  readonly apiKeyId: string | null;
  readonly intentId: string;
  readonly state: string;
  /** All events of the key. */
  readonly events: readonly string[];
};
type MadeKey = { readonly apiKeyId: string; readonly comment: string; readonly works: boolean };

const IN_USE = ["active", "draining"];

/** What is wrong with the keys after a rotation; empty if nothing is. */
export function keyViolations(evidence: KeyEvidence): readonly string[] {
  const { ledger, made, creates, due, sinks } = evidence;
  const count = (state: string) => ledger.filter((key) => key.state === state).length;
  const existing = made.filter(({ works }) => works).map(({ apiKeyId }) => apiKeyId);
  const inUse = ledger.filter(({ state }) => IN_USE.includes(state)).map(({ apiKeyId }) => apiKeyId ?? "");
  const retired = ledger.filter(({ state }) => state === "retired").map(({ apiKeyId }) => apiKeyId ?? "");
  const orphans = orphansOf(evidence);
  const used = made.length - orphans.length;
  const unflagged = orphans.filter(({ flagged }) => !flagged).map(({ apiKeyId }) => apiKeyId);
  const checks: readonly (readonly [boolean, string])[] = [
    [new Set(creates).size === creates.length, "a create was sent twice for one intent"],
    [creates.every((comment) => ledger.some(hasIntentIn(comment))), "a create belongs to no intent"],
    [used === due, `${used} keys were made and used, where ${due} were due`],
    [count("active") === 1, `${count("active")} keys are active instead of one`],
    [count("pending") === 0, "a key is still pending"],
    [unflagged.length === 0, `the service made keys that nothing flags: ${unflagged.join(", ")}`],
    [inUse.every((id) => existing.includes(id)), "a key in use does not exist"],
    [!retired.some((id) => existing.includes(id)), "a retired key works"],
    [new Set(sinks).size <= 1, "the sinks hold different keys"],
  ];
  return checks.filter(([holds]) => !holds).map(([, violation]) => `I7: ${violation}`);
}

/** The keys that the service made and that were never active. Each must be flagged as an orphan, even if it was deleted since. */
function orphansOf({ ledger, made }: Pick<KeyEvidence, "ledger" | "made">) {
  return made.flatMap(({ apiKeyId, comment }) => {
    const events = ledger.find(hasIntentIn(comment))?.events ?? [];
    return events.includes("active") ? [] : [{ apiKeyId, flagged: events.includes("orphan") }];
  });
}

/** Compares by the comment, because the ledger may not have the id of an orphan. */
function hasIntentIn(comment: string): (key: LedgerKey) => boolean {
  return ({ intentId }) => comment.includes(intentId);
}
