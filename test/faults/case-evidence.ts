// The evidence of one fault case, collected when it is over: what the service answered, what readers could have seen, how programs ended.

import type { Exchange, RowText } from "./history.ts";

/** The visible rows of each slice, by the slice's name; a slice without rows is left out. */
export type Visible = ReadonlyMap<string, readonly RowText[]>;

export type ProgramEnd = {
  readonly who: string;
  readonly command: string;
  /** null if a signal ended the program. */
  readonly status: number | null;
  readonly output: string;
  readonly startedAt: number;
  /** The due slices that were not complete when the program had ended; left out if coverage was not read at that time. */
  readonly notCompleteAfter?: readonly string[];
};

export type Evidence = {
  readonly exchanges: readonly Exchange[];
  /** What the views showed after each change of a number, oldest first, including changes from before the case. */
  readonly moments: readonly Visible[];
  /** What the views show at the end. */
  readonly now: Visible;
  /** The status of every due slice, by the slice's name. */
  readonly coverage: ReadonlyMap<string, string>;
  /** The slices that must be complete after the recovery run. */
  readonly due: readonly string[];
  /** The slices that were due before the case began: they must always have a status. */
  readonly dueBefore: readonly string[];
  readonly programs: readonly ProgramEnd[];
  /** The name of the program that must repair everything in one ordinary run once the faults are over; undefined before that run. */
  readonly recovery: string | undefined;
  readonly runs: readonly StoredRun[];
  readonly caps: Caps;
};

export type StoredRun = {
  readonly status: string;
  readonly planned: number;
  readonly complete: number;
  /** Slices whose answer was dropped, because a newer one was already stored. */
  readonly stale: number;
};

/** The most calls at once, and the most tries of one call, that the programs may make. */
export type Caps = {
  readonly concurrent: number;
  readonly attempts: number;
  /** Killed or frozen programs. Others take over their slots while the service may still work on their calls. */
  readonly exempt: ReadonlySet<string>;
};

export function sliceName(series: string, day: string): string {
  return `${series} @ ${day}`;
}
