// What an alert and a snooze are, and which alerts a snooze holds. Pure.

import type { Snooze } from "../db/snoozes.ts";
import { instantText } from "../show/format.ts";
import type { Day } from "../usage/days.ts";

/** A condition that a person should know of. */
export type Alert = {
  /** What `alerts snooze` takes. */
  readonly name: string;
  readonly text: string;
  /** The section of the dashboard with the details. */
  readonly section: "jobs" | "runs" | "gaps" | "keys" | "budgets" | "anomalies";
  /** Set while a person has snoozed the alert. */
  readonly snooze?: Snooze | undefined;
};

/** The words that names of alerts begin with. */
export const ALERT_KINDS: readonly string[] = [
  ...["worker", "config", "overdue", "export", "rotation", "gaps", "key"],
  ...["projects", "budget", "anomaly"],
];

/** A condition to notify of when it begins and when it is over. */
export type Condition = {
  /** What the notification is about. Every replica uses the same subject, so that only one of them sends the notification. */
  readonly subject: string;
  /** Other names whose snooze holds the condition as well. */
  readonly alsoNamed?: readonly string[];
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

/** How many words precede a job's name, which is not in quotes and may have spaces. */
const WORDS_BEFORE_JOB: ReadonlyMap<string, number> = new Map([
  ["export", 1],
  ["rotation", 1],
  ["gaps", 1],
  ["overdue", 2],
  ["key", 2],
]);

/**
 * A snooze also holds the alerts whose names continue its own: `gaps` holds `gaps nightly`, and `budget november` its thresholds. A job's
 * name is held as a whole: `gaps nightly` does not hold those of a job "nightly eu".
 */
export function isHeldBy(name: string, snooze: Pick<Snooze, "name">): boolean {
  if (name === snooze.name) return true;
  const words = snooze.name.split(" ");
  return name.startsWith(`${snooze.name} `) && words.length <= (WORDS_BEFORE_JOB.get(words[0] ?? "") ?? words.length);
}

/** The snooze that holds one of the names; of several, the one that ends last. */
export function snoozeOf(names: readonly string[], snoozes: readonly Snooze[]): Snooze | undefined {
  const holding = snoozes.filter((snooze) => names.some((name) => isHeldBy(name, snooze)));
  return holding.sort((a, b) => b.until.getTime() - a.until.getTime())[0];
}

export function withSnooze(alert: Alert, snoozes: readonly Snooze[]): Alert {
  const snooze = snoozeOf([alert.name], snoozes);
  return snooze ? { ...alert, snooze } : alert;
}

/** The alerts that nobody has snoozed. */
export function loudAlerts(alerts: readonly Alert[]): readonly Alert[] {
  return alerts.filter(({ snooze }) => snooze === undefined);
}

/** "snoozed until 2026-11-23 08:00 UTC by ann on node-1" */
export function renderSnooze({ until, by }: Snooze): string {
  return `snoozed until ${instantText(until)} by ${by}`;
}
