// How much of a budget is used in one period, as the database has it.

import type { Budget } from "./budgets.ts";
import type { Day } from "./days.ts";

/** A budget in one period. Amounts and percentages are exact or rounded decimal text. */
export type BudgetUse = {
  readonly name: string;
  readonly projectIds: readonly string[];
  readonly metric: string;
  readonly currency: string | null;
  /** Of a cost: "billed", "estimated", or "billed and estimated" if projects differ. */
  readonly costSource: string | null;
  readonly period: Budget["period"];
  readonly start: Day;
  readonly end: Day;
  readonly amount: string;
  readonly scope: Budget["scope"];
  /** Null for all usage. */
  readonly scopeValue: string | null;
  /** Null if no day of the period was read. */
  readonly used: string | null;
  /** `used` in percent of `amount`, cut to two decimals: 99.999 % is not shown as 100. */
  readonly percent: string | null;
  readonly forecast: string | null;
  readonly forecastLow: string | null;
  readonly forecastHigh: string | null;
  /** `forecast` in percent of `amount`, as `percent`. */
  readonly forecastPercent: string | null;
  /** In percent, in rising order. */
  readonly thresholds: readonly string[];
  /** Those of them that are reached. */
  readonly reached: readonly string[];
  readonly daysMissing: number;
  readonly daysNotFinal: number;
  readonly hasUnpriced: boolean;
  /** The part of `used` that only the monthly minimum of prices adds. Null if there is none. */
  readonly minimum: string | null;
  /** No project has stored usage or cost with the key, tag or model: it may be misspelt. */
  readonly isNeverSeen: boolean;
  readonly isFinal: boolean;
  /** The period is over, which does not mean that its numbers are final. */
  readonly isOver: boolean;
  /** The period was over before the budget was stored as it is: nobody is notified of it. */
  readonly isBeforeStored: boolean;
};
