// Groups gaps that have the same days, status and reason: an outage makes the same gap in every series. Pure.

import type { Day } from "../usage/day.ts";

export type Gap = {
  readonly project: string;
  readonly grouping: string;
  readonly filter: string;
  readonly status: string;
  readonly from: Day;
  readonly to: Day;
  readonly error: string | null;
};

export type GapGroup = Pick<Gap, "status" | "from" | "to" | "error"> & {
  readonly series: readonly Pick<Gap, "project" | "grouping" | "filter">[];
};

/** The parts in which error texts with the same reason differ. */
const OF_ONE_REQUEST = / \((?:\d+ attempts|request id [^)]*)\)/g;

export function reasonIn(error: string): string {
  return error.replaceAll(OF_ONE_REQUEST, "");
}

/** Groups are in the order of their first gap. */
export function groupGaps(gaps: readonly Gap[]): readonly GapGroup[] {
  const groups = Map.groupBy(gaps, ({ status, from, to, error }) =>
    JSON.stringify([status, from, to, error && reasonIn(error)]),
  );
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [{ status: first.status, from: first.from, to: first.to, error: first.error, series: group }] : [];
  });
}
