// How a day of a series stands, by one letter, as a series has hundreds of days. Pure.

import type { SliceStatus } from "../../report/report-data.ts";

export const DAY_LETTERS = {
  complete: "c",
  /** Complete as far as it was read, which was before the day was over. */
  open: "o",
  suspect: "s",
  failed: "f",
  missing: "m",
  /** Neither due nor read. */
  unread: ".",
} as const;

const STATUS_OF_LETTER: Readonly<Record<string, SliceStatus>> = {
  [DAY_LETTERS.complete]: "complete",
  [DAY_LETTERS.open]: "complete",
  [DAY_LETTERS.suspect]: "suspect",
  [DAY_LETTERS.failed]: "failed",
  [DAY_LETTERS.missing]: "missing",
};

export function statusOfLetter(letter: string): SliceStatus | undefined {
  return STATUS_OF_LETTER[letter];
}

export function isUnread(letter: string): boolean {
  return letter === DAY_LETTERS.unread;
}

/** What is known of the day is too low, or may be. */
export function isIncomplete(letter: string): boolean {
  return letter !== DAY_LETTERS.complete && letter !== DAY_LETTERS.unread;
}

export function countDays(letters: string, test: (letter: string) => boolean): number {
  return [...letters].filter(test).length;
}
