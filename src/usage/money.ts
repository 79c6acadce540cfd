// Budgets: what they may be for, and how much of one is used. Pure.

import type { Day } from "./days.ts";
import type { Grouping } from "./series.ts";

export const BUDGET_PERIODS = ["month", "day"] as const;

/** What a budget is for: all usage, or one value of a dimension. A key stands for all keys of its rotation. */
export const BUDGET_SCOPES = ["all", "key", "tag", "model"] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

/** The grouping of the unfiltered series that the use of a budget is read from. */
export const SCOPE_GROUPINGS: Readonly<Record<BudgetScope, Grouping>> = {
  all: "none",
  key: "accessor",
  tag: "tags",
  model: "model",
};

/** A budget in one period. Amounts and percentages are decimal text. */
export type BudgetUse = {
  readonly name: string;
  readonly projectIds: readonly string[];
  readonly metric: string;
  readonly currency: string | null;
  /** "billed", "estimated", or "billed and estimated" if projects differ; null if the budget is for no cost. */
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
  /** `used` in percent of `amount`, cut to two decimals: 99.999 % is not shown as 100. */
  readonly percent: string | null;
  readonly forecast: string | null;
  readonly forecastLow: string | null;
  readonly forecastHigh: string | null;
  /** `forecast` in percent of `amount`, cut as `percent` is. */
  readonly forecastPercent: string | null;
  /** In percent of `amount`, in rising order. */
  readonly thresholds: readonly string[];
  readonly reached: readonly string[];
  readonly daysMissing: number;
  readonly daysNotFinal: number;
  readonly hasUnpriced: boolean;
  /** No project has stored usage or cost with the key, tag or model: it may be misspelt. */
  readonly isNeverSeen: boolean;
  readonly isFinal: boolean;
  /** The period is over, which does not mean that its numbers are final. */
  readonly isOver: boolean;
  /** The period was over before the budget was stored as it is, so nobody is notified of it. */
  readonly isBeforeStored: boolean;
};

/** The budgets to show beside the usage of a project alone: a budget of several projects would say what the others used. */
export function budgetsOf(budgets: readonly BudgetUse[], projectId: string | null): readonly BudgetUse[] {
  return projectId === null ? budgets : budgets.filter(({ projectIds }) => projectIds.every((id) => id === projectId));
}
