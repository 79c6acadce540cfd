// What an alert and a condition to notify of are. Pure.

import type { Day } from "../usage/days.ts";

/** A condition that a person should know of. */
export type Alert = {
  readonly name: string;
  readonly text: string;
  /** The section of the dashboard with the details. */
  readonly section: "jobs" | "runs" | "gaps" | "keys" | "budgets" | "anomalies";
};

/** A condition to notify of when it begins and when it is over. */
export type Condition = {
  /** What the notification is about. Every replica uses the same subject, so that only one of them sends the notification. */
  readonly subject: string;
  readonly isWrong: boolean;
  /** Nothing is sent, and what was sent last holds: too little is known, or another condition says more. */
  readonly isSilent?: boolean;
  readonly text: () => string;
  /** Set if many such conditions may change at once, as after an outage. */
  readonly digest?: Digest;
};

export type AlertPhase = "wrong" | "well";

/** The notification about many days of one thing. */
export type Digest = {
  /** The same for all of them, and for none but them. */
  readonly subject: string;
  /** The condition's day. */
  readonly day: Day;
  /** `days` in order. */
  readonly text: (phase: AlertPhase, days: readonly Day[]) => string;
};

/**
 * A configured name as one word of an alert's name: in quotes if it has a space or a quote, so that no alert's name begins with the name
 * of something else.
 */
export function nameWord(name: string): string {
  return /^[^\s"]+$/.test(name) ? name : JSON.stringify(name);
}
