// What a condition is. Pure.

import type { HealthFigures, HealthState } from "./state.ts";

export type ConditionName =
  | ("worker" | "overdue" | "config" | "projects" | "export" | "rotation" | "interrupted")
  | ("missing" | "failed" | "suspect" | "gaps")
  | ("key" | "key attempts" | "key attention" | "key fallback" | "key age" | "key orphans" | "key removal")
  | ("budget" | "budget forecast" | "anomaly" | "unread");

export type Condition = {
  readonly name: ConditionName;
  /** What it is about, in names of the configuration. Every replica uses the same, so that only one of them sends the notification. */
  readonly subject: string;
  readonly severity: "critical" | "warning";
  readonly isWrong: boolean;
  /** What is wrong, and the next step; what has ended if it is not wrong. */
  readonly text: string;
  readonly since: Date | null;
  /** The section of the dashboard with the details. */
  readonly section: "jobs" | "runs" | "gaps" | "keys" | "budgets" | "anomalies";
  /**
   * Left out, the condition is shown while it is wrong, and notified when it begins and ends. "nowhere": too little is known, or another
   * condition says more; what was sent last holds.
   */
  readonly told?: "shown" | "notified" | "nowhere" | undefined;
};

/** What is known at a scrape is enough, too: the texts are shorter then. */
export type StateToJudge = HealthFigures & Partial<HealthState>;

/**
 * A configured name as one word of a subject: in quotes if it has a space or a quote, so that no subject begins with the name of something
 * else.
 */
export function nameWord(name: string): string {
  return /^[^\s"]+$/.test(name) ? name : JSON.stringify(name);
}
