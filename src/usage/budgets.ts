// What a budget is made of, for which days it holds, and which stored versions a changed configuration replaces. Pure.

import type { Day } from "./days.ts";
import type { METRICS } from "./metrics.ts";
import type { Grouping, Project } from "./series.ts";

export const BUDGET_PERIODS = ["month", "day"] as const;

/** The part of the usage that a budget is for: all of it, or one value of a dimension. A key stands for all keys of its rotation. */
export const BUDGET_SCOPES = ["all", "key", "tag", "model"] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

/** The series that the use of a budget is read from. They have no conditions. */
export const SCOPE_GROUPINGS: Readonly<Record<BudgetScope, Grouping>> = {
  all: "none",
  key: "accessor",
  tag: "tags",
  model: "model",
};

/** Decimal numbers are exact text. */
export type Budget = {
  readonly name: string;
  /** Undefined for all projects that an export reads. */
  readonly project: string | undefined;
  readonly projects: readonly Project[];
  readonly scope: BudgetScope;
  /** Undefined for "all". */
  readonly scopeValue: string | undefined;
  readonly metric: (typeof METRICS)[number] | "cost";
  /** Of a cost; an ISO 4217 code. */
  readonly currency: string | undefined;
  readonly amount: string;
  readonly period: (typeof BUDGET_PERIODS)[number];
  /** In percent of the amount, in rising order. */
  readonly thresholds: readonly string[];
  /** The first day that the budget is for; undefined: the day on which it is first stored. */
  readonly from: Day | undefined;
};

/** The first day of the period with the day. */
function periodStart(period: Budget["period"], day: Day): Day {
  return period === "month" ? `${day.slice(0, 7)}-01` : day;
}

/** The last version of a budget. */
export type LastBudget = {
  readonly name: string;
  readonly period: Budget["period"];
  /** As configured. */
  readonly from: Day | undefined;
  /** Two budgets with the same key are the same, apart from `from`. */
  readonly key: string;
  /** It is not configured any more, and its versions hold for the periods before. */
  readonly isRemoved: boolean;
};

/** Each version is cut so that it ends on the day before `start`, and `budget`, if it is still configured, holds from `start`. */
export type BudgetChange = { readonly name: string; readonly start: Day; readonly budget: Budget | undefined };

/**
 * A changed budget holds from its current period on: what was used of it before is still compared with what it was then. Only a new `from` changes
 * the past. A budget that is not configured any more ends with its last period before the current one, and goes on from the current one if
 * it is configured again.
 */
export function changeBudgets(
  last: readonly LastBudget[],
  configured: readonly Budget[],
  today: Day,
): readonly BudgetChange[] {
  const removed = last.filter(({ name, isRemoved }) => !isRemoved && !configured.some((one) => one.name === name));
  return [
    ...removed.map(({ name, period }) => ({ name, start: periodStart(period, today), budget: undefined })),
    ...configured.flatMap((budget) => {
      const stored = last.find(({ name }) => name === budget.name);
      const isSame = stored?.from === budget.from && stored?.key === budgetKey(budget);
      if (isSame && !stored?.isRemoved) return [];
      return [{ name: budget.name, start: changeStart(stored, budget, today), budget }];
    }),
  ];
}

/** If the lengths of the periods differ, the old version's period ends as well: else both would be current. */
function changeStart(stored: LastBudget | undefined, { period, from }: Budget, today: Day): Day {
  const isBegun = from === undefined || (from === stored?.from && from < today);
  const first = isBegun ? today : from;
  const starts = [period, stored?.period ?? period].map((one) => periodStart(one, first));
  return starts.sort()[0] ?? first;
}

/** The same for a configured and a stored budget. */
export function budgetKey(
  budget: Omit<Budget, "name" | "projects" | "from"> & { readonly projects: readonly { readonly id: string }[] },
): string {
  const { project, scope, scopeValue, metric, currency, amount, period, thresholds } = budget;
  const ids = budget.projects.map(({ id }) => id).sort();
  return JSON.stringify([project, scope, scopeValue, metric, currency, amount, period, thresholds, ids], (_, value) =>
    value === undefined ? null : value,
  );
}

// How much of a budget is used in one period, as the database has it.

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
