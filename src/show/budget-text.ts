// How much of a budget is used, in words. Pure.

import { present } from "../text.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import { counted, estimateText, quantityText, shortText } from "./format.ts";

/** "november (2026-11, billed)"; a budget of days has the day. */
export function budgetTitle({ name, costSource, ...use }: BudgetUse): string {
  return `${name} (${budgetPeriod(use)}${costSource === null ? "" : `, ${costSource}`})`;
}

export function budgetPeriod({ period, start }: Pick<BudgetUse, "period" | "start">): string {
  return period === "month" ? start.slice(0, 7) : start;
}

/** "$834.50 of $1,000 (83%), heading for $1,120 (112%); 2 days may still change" */
export function budgetUseText(use: BudgetUse): string {
  const { daysMissing, daysNotFinal, hasUnpriced, isNeverSeen, scope, scopeValue } = use;
  return present([
    budgetShareText(use),
    isNeverSeen && `no usage of ${scope} ${JSON.stringify(scopeValue)} was ever read`,
    daysMissing > 0 && `${counted(daysMissing, "day")} not read and not counted`,
    daysNotFinal > 0 && `${counted(daysNotFinal, "day")} may still change`,
    hasUnpriced && "usage without a price, or charges without an amount, are not counted",
  ]).join("; ");
}

/** "$834.50 of $1,000 (83%), heading for $1,120 (112%)" */
export function budgetShareText(use: BudgetUse): string {
  const { amount, used, percent, forecast, forecastPercent } = use;
  const limit = quantityText(amount, use);
  if (used === null || percent === null) return `no day of it was read yet; the budget is ${limit}`;
  const heading =
    forecast === null || forecastPercent === null
      ? ""
      : `, heading for ${estimateText(forecast, use)} (${wholePercent(forecastPercent)})`;
  return `${shortText(used, use)} of ${limit} (${wholePercent(percent)})${heading}`;
}

/** Rounds down, so that 100% is never shown of a budget that is not used up. */
export function wholePercent(percent: string): string {
  return `${Math.floor(Number(percent))}%`;
}
