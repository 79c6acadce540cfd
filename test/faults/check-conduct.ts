// The part of the checker (check.ts) about what the programs report to their user, and how they call the service. Pure.

import type { Evidence } from "./case-evidence.ts";

export function converges({ recovery, programs }: Pick<Evidence, "recovery" | "programs">): string[] {
  return programs
    .filter(({ who }) => who === recovery)
    .filter(({ status }) => status !== 0)
    .map(({ command, status, output }) => `I8: ${command} after the fault ended with ${status}: ${output}`);
}

export function honest({ programs, coverage, now, runs }: Evidence): string[] {
  // The exit status of a worker says nothing about its work.
  const saidOk = programs
    .filter(({ command }) => command !== "start")
    .filter(({ status, notCompleteAfter = [] }) => status === 0 && notCompleteAfter.length > 0)
    .map(
      ({ who, notCompleteAfter }) => `I9: ${who} ended with 0, and not complete was: ${notCompleteAfter?.join(", ")}`,
    );
  const empty = [...coverage]
    .filter(([slice, status]) => status === "complete" && !now.has(slice))
    .map(([slice]) => `I9: ${slice} is called complete and shows nothing`);
  // A stale slice is complete too: another program has stored a newer answer for it.
  const runsOk = runs
    .filter(({ status, planned, complete, stale }) => status === "ok" && complete + stale !== planned)
    .map(({ planned, complete }) => `I9: a run is called ok with ${complete} of ${planned} slices complete`);
  return [...saidOk, ...mistaken(programs), ...empty, ...runsOk];
}

export function mistaken(programs: Evidence["programs"]): string[] {
  return programs
    .filter(({ output }) => /^ {4}at /m.test(output))
    .map(({ who, output }) => `I9: ${who} took a fault for a mistake of the program: ${output}`);
}

export function polite({ exchanges, caps }: Evidence): string[] {
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
