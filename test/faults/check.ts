// Checks what must hold of the stored numbers after any fault. Pure. Each violation begins with the name of its invariant (I6, about
// secrets, is in interrupt.ts, and I7, about keys, in check-keys.ts):
// I1 every slice shows the rows of exactly one answer
// I2 after the recovery run every due slice is complete and shows the newest answer
// I3 no group counts twice
// I4 an older answer never replaces a newer one
// I5 rows that were shown do not disappear
// I8 the recovery run succeeds
// I9 what the program reports is true: exit status, status of slices and runs, no stack trace for a fault
// I10 the limits of concurrent calls and of attempts are kept

import { type Evidence, sliceName } from "./case-evidence.ts";
import type { Exchange, RowText } from "./history.ts";

/** Each violation as the name of its invariant and a description; empty if every invariant holds. */
export function violations(evidence: Evidence): readonly string[] {
  const answers = answersBySlice(evidence.exchanges);
  return [
    ...mixedAnswers(evidence, answers),
    ...unrepairedSlices(evidence, answers),
    ...doubledGroups(evidence),
    ...olderAnswers(evidence, answers),
    ...lostRows(evidence),
    ...failedRecovery(evidence),
    ...falseReports(evidence),
    ...exceededLimits(evidence),
  ];
}

function mixedAnswers({ moments, now }: Evidence, answers: Answers): string[] {
  const mixed = [...moments, now].flatMap((visible) =>
    [...visible].filter(([slice, rows]) => !answerOf(answers, slice, rows)).map(([slice, rows]) => ({ slice, rows })),
  );
  return [...Map.groupBy(mixed, ({ slice }) => slice)].map(
    ([slice, [first]]) => `I1: ${slice} showed what no answer had: ${JSON.stringify(first?.rows)}`,
  );
}

function unrepairedSlices(evidence: Evidence, answers: Answers): string[] {
  const { now, coverage, due, dueBefore, recovery, caps } = evidence;
  if (recovery === undefined) {
    const withoutStatus = dueBefore.filter((slice) => !coverage.has(slice));
    return withoutStatus.map((slice) => `I2: ${slice} was due and has no status any more`);
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

function doubledGroups({ moments, now }: Evidence): string[] {
  return [...new Set([...moments, now])].flatMap((visible) =>
    [...visible].flatMap(([slice, rows]) => {
      const groups = rows.map((row) => JSON.parse(row)[0]);
      return new Set(groups).size === groups.length ? [] : [`I3: ${slice} has a group twice: ${JSON.stringify(rows)}`];
    }),
  );
}

function olderAnswers({ moments }: Evidence, answers: Answers): string[] {
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
function lostRows({ moments, now }: Evidence): string[] {
  const seen = new Set<string>();
  return [...moments, now].flatMap((visible) => {
    const gone = [...seen].filter((slice) => !visible.has(slice));
    for (const slice of visible.keys()) seen.add(slice);
    return gone.map((slice) => `I5: ${slice} had rows and lost them`);
  });
}

// What the programs report to their user, and how they call the service.

export function failedRecovery({ recovery, programs }: Pick<Evidence, "recovery" | "programs">): string[] {
  return programs
    .filter(({ who }) => who === recovery)
    .filter(({ status }) => status !== 0)
    .map(({ command, status, output }) => `I8: ${command} after the fault ended with ${status}: ${output}`);
}

function falseReports({ programs, coverage, now, runs }: Evidence): string[] {
  // The exit status of a worker says nothing about its work.
  const falselyEnded = programs
    .filter(({ command }) => command !== "start")
    .filter(({ status, notCompleteAfter = [] }) => status === 0 && notCompleteAfter.length > 0)
    .map(
      ({ who, notCompleteAfter }) => `I9: ${who} ended with 0, although incomplete: ${notCompleteAfter?.join(", ")}`,
    );
  const empty = [...coverage]
    .filter(([slice, status]) => status === "complete" && !now.has(slice))
    .map(([slice]) => `I9: ${slice} is called complete and shows nothing`);
  // A stale slice is complete too: another program has stored a newer answer for it.
  const falselyOk = runs
    .filter(({ status, planned, complete, stale }) => status === "ok" && complete + stale !== planned)
    .map(({ planned, complete }) => `I9: a run is called ok with ${complete} of ${planned} slices complete`);
  return [...falselyEnded, ...stackTraces(programs), ...empty, ...falselyOk];
}

export function stackTraces(programs: Evidence["programs"]): string[] {
  return programs
    .filter(({ output }) => /^ {4}at /m.test(output))
    .map(({ who, output }) => `I9: ${who} printed a stack trace: ${output}`);
}

function exceededLimits({ exchanges, caps }: Evidence): string[] {
  const known = exchanges.filter(({ who }) => !caps.exempt.has(who));
  const calls = known.flatMap(({ arrivedAt, endedAt }) => [
    { at: arrivedAt, change: 1 },
    { at: endedAt ?? Number.POSITIVE_INFINITY, change: -1 },
  ]);
  let open = 0;
  let most = 0;
  for (const { change } of calls.toSorted((a, b) => a.at - b.at || a.change - b.change)) {
    open += change;
    most = Math.max(most, open);
  }
  const tooMany = most > caps.concurrent ? [`I10: ${most} calls at once, where ${caps.concurrent} are allowed`] : [];
  const attempts = Map.groupBy(known, ({ who, path }) => `${who} ${path}`);
  const tooOften = [...attempts]
    .filter(([, all]) => all.length > caps.attempts)
    .map(([call, all]) => `I10: ${call} was tried ${all.length} times, where ${caps.attempts} are allowed`);
  return [...tooMany, ...tooOften];
}

// The answers of a case by slice, and the answer that a reader sees.

/** One answer of the service about one slice. */
type Answer = { readonly exchange: Exchange; readonly version: number; readonly rows: string };
type Answers = ReadonlyMap<string, readonly Answer[]>;

function answersBySlice(exchanges: readonly Exchange[]): Answers {
  const answers = exchanges.flatMap((exchange) => {
    const { asked, version, days } = exchange;
    if (!asked || version === undefined) return [];
    return asked.days.map((day) => ({
      slice: sliceName(asked.series, day),
      answer: { exchange, version, rows: JSON.stringify(days?.get(day) ?? []) },
    }));
  });
  return new Map(
    [...Map.groupBy(answers, ({ slice }) => slice)].map(([slice, all]) => [slice, all.map(({ answer }) => answer)]),
  );
}

/** The newest answer that has exactly these rows. */
function answerOf(answers: Answers, slice: string, rows: readonly RowText[]): Answer | undefined {
  const text = JSON.stringify(rows);
  return answers.get(slice)?.findLast((answer) => answer.rows === text);
}

/** The newest answer that was sent whole. Answers to the programs in `exempt` do not count: these may not have stored them. */
function newestAnswer(answers: readonly Answer[], exempt: ReadonlySet<string>): Answer | undefined {
  return answers.findLast(({ exchange }) => exchange.answeredAt !== undefined && !exempt.has(exchange.who));
}

/** A request takes its fetch number at most this long before it arrives. The number decides which answer is newer. */
const FETCH_NUMBER_MS_MAX = 300;

/** Whether the shown answer may stay: it is the newest, or its fetch overlaps the newest one's. Then either may be stored last. */
function isAsNew(shown: Answer, newest: Answer): boolean {
  const { answeredAt = Number.POSITIVE_INFINITY } = shown.exchange;
  return shown.version >= newest.version || answeredAt >= beganAt(newest);
}

function beganAt({ exchange }: Answer): number {
  return exchange.arrivedAt - FETCH_NUMBER_MS_MAX;
}
