// The conditions about the usage itself: thresholds of budgets, and unusual days. Pure.

import type { Anomaly, JudgedUsage } from "../db/anomalies.ts";
import { budgetPeriod, budgetTitle, budgetUseText } from "../show/budget-text.ts";
import { counted, metricName, roundedText } from "../show/format.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import { type Condition, nameWord, type StateToJudge } from "./condition.ts";

export function usageConditions({ notRead, budgets, anomalies }: StateToJudge): readonly Condition[] {
  return [
    ...notRead.map(({ kind, error }): Condition => {
      const section = kind === "budget" ? "budgets" : "anomalies";
      const text = `${section}: not read, as reading them failed: ${error}`;
      const about = { name: "unread", subject: kind, severity: "warning", told: "shown", since: null } as const;
      return { ...about, isWrong: true, text, section };
    }),
    ...budgets.flatMap(budgetConditions),
    ...budgets.flatMap(forecastCondition),
    ...anomalies.map(anomalyCondition),
  ];
}

/**
 * Each threshold is notified once in a period, and once more if corrected numbers are below it again. Below it means nothing while days
 * are missing, as after a change of what the budget is read from. Of several that are reached at once only the highest is told.
 */
function budgetConditions(use: BudgetUse): readonly Condition[] {
  const isPartial = use.used === null || use.daysMissing > 0;
  return use.thresholds.map((threshold): Condition => {
    const isWrong = use.reached.includes(threshold);
    const isTold = isWrong ? threshold === use.reached.at(-1) : !isPartial && !use.isBeforeStored;
    return {
      ...{ name: "budget", subject: `${nameWord(use.name)} ${budgetPeriod(use)} ${threshold}`, since: null },
      severity: Number(threshold) >= 100 ? "critical" : "warning",
      ...{ isWrong, section: "budgets" },
      text: `budget ${budgetTitle(use)} ${isWrong ? `reached ${threshold}%` : `is below ${threshold}% again`}: ${budgetUseText(use)}`,
      told: !isTold ? "nowhere" : use.isBeforeStored ? "shown" : undefined,
    };
  });
}

/**
 * A budget that will probably be exceeded. Once a threshold is reached, the text about that has the forecast. Not notified, because the
 * forecast may change every day.
 */
function forecastCondition(use: BudgetUse): readonly Condition[] {
  const { forecastPercent, reached, isOver } = use;
  if (forecastPercent === null || isOver || reached.length > 0) return [];
  return [
    {
      ...{ name: "budget forecast", subject: `${nameWord(use.name)} ${budgetPeriod(use)}`, since: null },
      ...{ severity: "warning", told: "shown", section: "budgets", isWrong: Number(forecastPercent) > 100 },
      text: `budget ${budgetTitle(use)} will probably be exceeded: ${budgetUseText(use)}`,
    },
  ];
}

/** One for each project and filter, however many of its days are unusual. */
function anomalyCondition({ project, filter, unfiltered, through, anomalies }: JudgedUsage): Condition {
  const name = unfiltered ? project : `${project} under ${filter}`;
  // The newest first.
  const [newest, ...others] = anomalies.filter(({ isOpen }) => isOpen);
  const more = others.length > 0 ? `; also ${counted(others.length, "day")} before it` : "";
  return {
    ...{ name: "anomaly", severity: "warning", section: "anomalies", since: null },
    subject: [nameWord(project), ...(unfiltered ? [] : [nameWord(filter)])].join(" "),
    isWrong: newest !== undefined,
    text: newest
      ? `unusual usage of ${name} on ${newest.day}: ${anomalyText(newest)}${more}`
      : `The alert about unusual usage of ${name} is over; days are judged through ${through}.`,
  };
}

/** "12,345 requests, usually 3,100 to 4,900" */
function anomalyText({ metric, amount, low, high }: Anomaly): string {
  return `${metricName(metric)}: ${roundedText(amount)}, usually ${roundedText(low)} to ${roundedText(high)}`;
}
