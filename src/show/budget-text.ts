// How much of a budget is used, in words. Pure.

import type { BudgetUse } from "../usage/budgets.ts";
import { counted, exactText, roundedText } from "./format.ts";

/** "november (2026-11)"; a budget of days has the day. */
export function budgetTitle({ name, ...use }: BudgetUse): string {
  return `${name} (${budgetPeriod(use)})`;
}

export function budgetPeriod({ period, start }: Pick<BudgetUse, "period" | "start">): string {
  return period === "month" ? start.slice(0, 7) : start;
}

/** "83.2% of 1,000 hours used (832), forecast for the month: 1,120 (1,050 to 1,190); 2 days are not final" */
export function budgetUseText(use: BudgetUse): string {
  const { amount, used, percent } = use;
  const limit = `${exactText(amount)} ${budgetUnit(use)}`;
  const share =
    used === null ? `no day of it was read yet, of ${limit}` : `${percent}% of ${limit} used (${roundedText(used)})`;
  return [`${share}${forecastText(use)}`, ...lackingTexts(use)].join("; ");
}

/** "tokens in"; for a cost "USD (estimated)". */
function budgetUnit({ metric, currency, costSource }: BudgetUse): string {
  return currency === null
    ? metric.replaceAll("_", " ")
    : `${currency}${costSource === null ? "" : ` (${costSource})`}`;
}

function forecastText({ forecast, forecastLow, forecastHigh }: BudgetUse): string {
  if (forecast === null) return "";
  const interval =
    forecastLow === null || forecastHigh === null
      ? ""
      : ` (${roundedText(forecastLow)} to ${roundedText(forecastHigh)})`;
  return `, forecast for the month: ${roundedText(forecast)}${interval}`;
}

/** What is not in the numbers, or may still change in them. */
function lackingTexts(use: BudgetUse): readonly string[] {
  const { daysMissing, daysNotFinal, hasUnpriced } = use;
  return [
    ...(use.isNeverSeen ? [neverSeenText(use)] : []),
    ...(daysMissing > 0 ? [`${counted(daysMissing, "day")} not read and not counted`] : []),
    ...(daysNotFinal > 0 ? [`${counted(daysNotFinal, "day")} not final`] : []),
    ...(hasUnpriced ? ["usage without a price or an amount not counted"] : []),
  ];
}

/** 'no usage of tag "prodd" was ever read' */
function neverSeenText({ scope, scopeValue }: Pick<BudgetUse, "scope" | "scopeValue">): string {
  return `no usage of ${scope} ${JSON.stringify(scopeValue)} was ever read`;
}
