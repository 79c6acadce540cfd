// Budgets: what they may be for, and how much of one is used. Pure.

import type { Day } from "./days.ts";

export const BUDGET_PERIODS = ["month", "day"] as const;

/** What a budget can be limited to, and the grouping to read it from. A key is an accessor, or a rotation's name: then all its keys count. */
export const SCOPE_GROUPINGS = { all: "none", key: "accessor", tag: "tags", model: "model" } as const;
export type BudgetScope = keyof typeof SCOPE_GROUPINGS;

/** A budget in one period. Amounts and percentages are decimal text. Percentages are cut to two decimals, not rounded: 99.999 % is not 100. */
export type BudgetUse = {
  readonly name: string;
  readonly projectIds: readonly string[];
  readonly metric: string;
  readonly currency: string | null;
  /** "billed", "estimated", or "billed and estimated" if projects differ; null if the budget limits usage, not cost. */
  readonly costSource: string | null;
  readonly period: (typeof BUDGET_PERIODS)[number];
  readonly start: Day;
  readonly end: Day;
  readonly amount: string;
  readonly scope: BudgetScope;
  /** Null for all usage. */
  readonly scopeValue: string | null;
  /** Null if no day of the period was read. */
  readonly used: string | null;
  readonly percent: string | null;
  readonly forecast: string | null;
  readonly forecastLow: string | null;
  readonly forecastHigh: string | null;
  readonly forecastPercent: string | null;
  /** Percentages, in rising order. */
  readonly thresholds: readonly string[];
  readonly reached: readonly string[];
  readonly daysMissing: number;
  readonly daysNotFinal: number;
  readonly hasUnpriced: boolean;
  /** Nothing stored has the key, tag or model: it may be misspelt. */
  readonly isNeverSeen: boolean;
  readonly isFinal: boolean;
  /** The period is over, which does not mean that its numbers are final. */
  readonly isOver: boolean;
  /** The period ended before the present version of the budget was first stored: no notification is sent about it. */
  readonly isBeforeStored: boolean;
};

/** For one project, only the budgets that it shares with no other: a shared budget would show what the others used. */
export function budgetsOf(budgets: readonly BudgetUse[], projectId: string | null): readonly BudgetUse[] {
  return projectId === null ? budgets : budgets.filter(({ projectIds }) => projectIds.every((id) => id === projectId));
}
