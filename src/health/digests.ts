// Sends many changes of one kind as one notification. Pure.

import type { AlertPhase, Condition } from "./alert.ts";

export type Change = {
  readonly condition: Condition;
  readonly phase: AlertPhase;
};

/** One or more changes to send as one notification. */
export type ChangeSet = {
  readonly subject: string;
  readonly phase: AlertPhase;
  readonly text: () => string;
  /** Of a digest the subjects of all its changes. */
  readonly covers?: readonly string[];
};

/** More changes than this that have one digest are sent as that. */
const SINGLE_MAX = 5;

export function digested(changes: readonly Change[]): readonly ChangeSet[] {
  const sets = Map.groupBy(changes, ({ condition: { subject, digest }, phase }) =>
    JSON.stringify([phase, digest ? digest.subject : null, digest ? null : subject]),
  );
  return [...sets.values()].flatMap((set): readonly ChangeSet[] => {
    const [first] = set;
    const digest = first?.condition.digest;
    if (!first || !digest || set.length <= SINGLE_MAX) return set.map(single);
    const days = set.flatMap(({ condition }) => condition.digest?.day ?? []);
    const text = () => digest.text(first.phase, [...new Set(days)].sort());
    return [
      { subject: digest.subject, phase: first.phase, text, covers: set.map(({ condition }) => condition.subject) },
    ];
  });
}

function single({ condition: { subject, text }, phase }: Change): ChangeSet {
  return { subject, phase, text };
}
