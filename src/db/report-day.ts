// How a day of a series stands, by one letter, as a series has hundreds of days. Pure.

import type { SliceStatus } from "../report/report-data.ts";

export const DAY = {
  complete: "c",
  /** Complete as far as it was read, which was before the day was over. */
  open: "o",
  suspect: "s",
  failed: "f",
  missing: "m",
  /** Neither due nor read. */
  unread: ".",
} as const;

const STATUS: Readonly<Record<string, SliceStatus>> = {
  [DAY.complete]: "complete",
  [DAY.open]: "complete",
  [DAY.suspect]: "suspect",
  [DAY.failed]: "failed",
  [DAY.missing]: "missing",
};

export function statusOf(letter: string): SliceStatus | undefined {
  return STATUS[letter];
}

export function isUnread(letter: string): boolean {
  return letter === DAY.unread;
}

/** What is known of the day is too low, or may be. */
export function isIncomplete(letter: string): boolean {
  return letter !== DAY.complete && letter !== DAY.unread;
}

export function countDays(letters: string, test: (letter: string) => boolean): number {
  return [...letters].filter(test).length;
}
