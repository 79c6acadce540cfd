// What is known of a case when it is over: what the service answered, what every reader could have seen at every moment, and
// how the programs ended.

import type { Exchange, RowText } from "./history.ts";

/** What is visible of each slice, by its series and day; a slice without rows is left out. */
export type Visible = ReadonlyMap<string, readonly RowText[]>;

export type ProgramEnd = {
  readonly who: string;
  readonly command: string;
  /** null where a signal ended it. */
  readonly status: number | null;
  readonly output: string;
  readonly startedAt: number;
  /** How the database said its slices were when it had ended, where that was looked at. */
  readonly notCompleteAfter?: readonly string[];
};

export type Evidence = {
  readonly exchanges: readonly Exchange[];
  /** What the views showed after each change of a number, oldest first; those of before the case are among them. */
  readonly moments: readonly Visible[];
  /** What the views show at the end. */
  readonly now: Visible;
  /** The status of every slice that is due, by the same names. */
  readonly coverage: ReadonlyMap<string, string>;
  /** The slices that must be complete after the recovery run. */
  readonly due: readonly string[];
  /** Those of them that were due before the case began: they have a status at any time. */
  readonly dueBefore: readonly string[];
  readonly programs: readonly ProgramEnd[];
  /** The program whose one ordinary run, after the faults had stopped, must repair everything; undefined before that run. */
  readonly recovery: string | undefined;
  readonly runs: readonly StoredRun[];
  readonly caps: Caps;
};

export type StoredRun = {
  readonly status: string;
  readonly planned: number;
  readonly complete: number;
  readonly stale: number;
};

export type Caps = {
  readonly concurrent: number;
  readonly attempts: number;
  /** Programs that were stopped or killed: the service may still have worked on their calls when others had their slots. */
  readonly exempt: ReadonlySet<string>;
};

export function sliceName(series: string, day: string): string {
  return `${series} @ ${day}`;
}
