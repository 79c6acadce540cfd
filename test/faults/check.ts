// Checks what must hold of the stored numbers after any fault. Pure. Each violation begins with the name of its invariant (I6, about
// secrets, is in leak-violations.ts, and I7, about keys, in check-keys.ts):
// I1 every slice shows the rows of exactly one answer
// I2 after the recovery run every due slice is complete and shows the newest answer
// I3 no group counts twice
// I4 an older answer never replaces a newer one
// I5 rows that were shown do not disappear
// I8 the recovery run succeeds
// I9 what the program reports is true: exit status, status of slices and runs, no stack trace for a fault
// I10 the limits of concurrent calls and of attempts are kept

import {
  type Answer,
  type Answers,
  answerOf,
  answersBySlice,
  beganAt,
  isAsNew,
  newestAnswer,
} from "./answers-by-slice.ts";
import type { Evidence } from "./case-evidence.ts";
import { converges, honest, polite } from "./check-conduct.ts";

/** Each violation as the name of its invariant and a description; empty if every invariant holds. */
export function violations(evidence: Evidence): readonly string[] {
  const answers = answersBySlice(evidence.exchanges);
  return [
    ...atomic(evidence, answers),
    ...nothingLost(evidence, answers),
    ...countedOnce(evidence),
    ...monotonic(evidence, answers),
    ...neverWorse(evidence),
    ...converges(evidence),
    ...honest(evidence),
    ...polite(evidence),
  ];
}

function atomic({ moments, now }: Evidence, answers: Answers): string[] {
  const mixed = [...moments, now].flatMap((visible) =>
    [...visible].filter(([slice, rows]) => !answerOf(answers, slice, rows)).map(([slice, rows]) => ({ slice, rows })),
  );
  return [...Map.groupBy(mixed, ({ slice }) => slice)].map(
    ([slice, [first]]) => `I1: ${slice} showed what no answer had: ${JSON.stringify(first?.rows)}`,
  );
}

function nothingLost(evidence: Evidence, answers: Answers): string[] {
  const { now, coverage, due, dueBefore, recovery, caps } = evidence;
  if (recovery === undefined) {
    const untold = dueBefore.filter((slice) => !coverage.has(slice));
    return untold.map((slice) => `I2: ${slice} was due and has no status any more`);
  }
  return due.flatMap((slice) => {
    const status = coverage.get(slice) ?? "not there";
    const newest = newestAnswer(answers.get(slice) ?? [], caps.exempt);
    const shown = answerOf(answers, slice, now.get(slice) ?? []);
    if (status !== "complete") return [`I2: ${slice} is ${status} after the recovery run`];
    if (shown && (!newest || isAsNew(shown, newest))) return [];
    if (!newest) return [`I2: ${slice} is complete, and the service was never asked for it`];
    return [`I2: ${slice} does not show the newest answer ${newest.version} but ${shown?.version ?? "none at all"}`];
  });
}

function countedOnce({ moments, now }: Evidence): string[] {
  return [...new Set([...moments, now])].flatMap((visible) =>
    [...visible].flatMap(([slice, rows]) => {
      const groups = rows.map((row) => JSON.parse(row)[0]);
      return new Set(groups).size === groups.length ? [] : [`I3: ${slice} has a group twice: ${JSON.stringify(rows)}`];
    }),
  );
}

function monotonic({ moments }: Evidence, answers: Answers): string[] {
  const shown = new Map<string, Answer>();
  const found: string[] = [];
  for (const visible of moments) {
    for (const [slice, rows] of visible) {
      const answer = answerOf(answers, slice, rows);
      const before = shown.get(slice);
      if (!answer) continue;
      shown.set(slice, answer);
      if (!before || before.version === answer.version) continue;
      // Fetches that overlap may be stored in either order. A fetch that ended before the other began must not be stored after it.
      const endedAt = answer.exchange.answeredAt ?? answer.exchange.endedAt ?? Number.POSITIVE_INFINITY;
      if (endedAt < beganAt(before))
        found.push(`I4: ${slice} went back from answer ${before.version} to ${answer.version}`);
    }
  }
  return found;
}

/** The service of these cases always has rows for a slice it once had rows for. */
function neverWorse({ moments, now }: Evidence): string[] {
  const seen = new Set<string>();
  return [...moments, now].flatMap((visible) => {
    const gone = [...seen].filter((slice) => !visible.has(slice));
    for (const slice of visible.keys()) seen.add(slice);
    return gone.map((slice) => `I5: ${slice} had rows and lost them`);
  });
}
