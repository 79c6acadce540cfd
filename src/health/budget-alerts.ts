// The alerts about budgets: one for each threshold that is reached in a period. Pure.

import { budgetPeriod, budgetTitle, budgetUseText } from "../show/budget-text.ts";
import { counted } from "../show/format.ts";
import type { BudgetUse } from "../usage/budget-use.ts";
import { type Alert, type Condition, type Digest, nameWord } from "./alert.ts";

/** One alert a budget and period, named after the highest threshold that is reached. */
export function budgetAlerts(budgets: readonly BudgetUse[]): readonly Alert[] {
  return budgets.flatMap((use) => {
    const highest = use.reached.at(-1);
    if (highest === undefined) return [];
    const text = `budget ${budgetTitle(use)} reached ${highest}%: ${budgetUseText(use)}`;
    return [{ name: alertName(use, highest), text, section: "budgets" }];
  });
}

/**
 * Each threshold is notified once in a period, and once more if corrected numbers are below it again. Below it means nothing while days
 * are missing, as after a change of what the budget is read from. Of several that are reached at once only the highest is notified.
 */
export function budgetConditions(use: BudgetUse): readonly Condition[] {
  if (use.isBeforeStored) return [];
  const isPartial = use.used === null || use.daysMissing > 0;
  return use.thresholds.map((threshold) => {
    const isWrong = use.reached.includes(threshold);
    const state = isWrong ? `reached ${threshold}%` : `is below ${threshold}% again`;
    const text = () => `Budget ${budgetTitle(use)} ${state}: ${budgetUseText(use)}.`;
    return {
      subject: alertName(use, threshold),
      isWrong,
      isSilent: isWrong ? threshold !== use.reached.at(-1) : isPartial,
      text,
      ...(use.period === "day" && { digest: digestOf(use) }),
    };
  });
}

/** Days that are caught up would send a notification each. */
function digestOf({ name, start }: BudgetUse): Digest {
  return {
    subject: `budget ${nameWord(name)} days`,
    day: start,
    text: (phase, days) => {
      const state = phase === "wrong" ? "reached thresholds" : "is below thresholds again";
      return `Budget ${name} ${state} on ${counted(days.length, "day")} from ${days[0]} to ${days.at(-1)}; bi.budgets has each of them.`;
    },
  };
}

/** "budget november 2026-11 80" */
function alertName(use: BudgetUse, threshold: string): string {
  return `budget ${nameWord(use.name)} ${budgetPeriod(use)} ${threshold}`;
}
