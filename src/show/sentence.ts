// What matters most, in one or two sentences made from facts: the beginning of the overview, of the report file and of a notification. Pure.

import { type Answer, comparedWindow } from "../facts/answer.ts";
import type { Forecast, Overview } from "../facts/overview.ts";
import { present } from "../text.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import { addDays, dayCount } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import { nameOf } from "./answer-chart.ts";
import { wholePercent } from "./budget-text.ts";
import {
  changeText,
  dayLabel,
  daysText,
  estimateText,
  isZero,
  type Measure,
  monthName,
  periodText,
  quantityText,
} from "./format.ts";

/** `trouble` is why nothing new comes in, if that is the case. It comes first, as every number after it is older or too low. */
export function sentences(data: Overview, budgets: readonly BudgetUse[], trouble: string | undefined): string[] {
  if (isNew(data)) return ["There are no numbers yet."];
  const lacking = trouble ?? lackingSentence(data.cost ?? data.total);
  const whole = data.monthSoFar ? monthSentence(data.monthSoFar, budgets) : periodSentence(data);
  return present([lacking, whole, changeSentence(data)]);
}

/** Whether nothing was ever exported. */
export function isNew({ total }: Overview): boolean {
  return total.projectCount === 0 && total.available.groupings.length === 0;
}

/** For a message: the sentences, then the numbers. */
export function reportText(data: Overview, budgets: readonly BudgetUse[]): string {
  const { total, cost, figures } = data;
  const used = figures.filter(({ amount }) => !isZero(amount));
  const numbers = present([
    cost?.total?.amount != null &&
      numberText(cost.total.amount, cost.compared ? cost.total.before : null, cost.question),
    ...used.map(({ metric, amount, before }) =>
      numberText(amount, total.compared ? before : null, { metric, currency: null }),
    ),
  ]);
  if (numbers.length === 0) return `Nothing is known of ${periodText(data.period)}.`;
  return [...sentences(data, budgets, undefined), `${periodText(data.period)}: ${numbers.join("; ")}.`].join(" ");
}

function numberText(amount: string, before: string | null, measure: Measure): string {
  return `${quantityText(amount, measure)}${before === null ? "" : ` (${changeText(amount, before)})`}`;
}

/** "The numbers of Nov 20 – 22, 2026 are too low: not all of it could be read." */
function lackingSentence({ lacking, days, groups }: Answer): string | undefined {
  const { incompleteDays, unreadDays } = lacking;
  const lackingDays = [...incompleteDays, ...unreadDays];
  const [first, last] = [lackingDays[0], lackingDays.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  if (lackingDays.length === days.length && incompleteDays.length === 0) return "None of these days was read.";
  const which = daysText(lackingDays);
  if (incompleteDays.length > 0) {
    const hasNumbers = days.some(
      ({ day }, i) => incompleteDays.includes(day) && groups.some(({ byDay }) => (byDay?.[i] ?? null) !== null),
    );
    return hasNumbers
      ? `The numbers of ${which} are too low: not all of it could be read.`
      : `There are no numbers for ${which}, which could not be read.`;
  }
  const isStretch = dayCount({ start: first, end: last }) === lackingDays.length;
  if (isStretch && first === days[0]?.day)
    return `The numbers begin on ${dayLabel(addDays(last, 1))}: the days before were not read.`;
  if (isStretch && last === days.at(-1)?.day)
    return `The numbers end on ${dayLabel(addDays(first, -1))}: the days after were not read yet.`;
  return `Not in the numbers: ${which}, which ${lackingDays.length === 1 ? "was" : "were"} not read.`;
}

/** "November: $165,519 so far, heading for $239,000 ($232,000 to $246,000), 4.1 times the budget." */
function monthSentence(monthSoFar: NonNullable<Overview["monthSoFar"]>, budgets: readonly BudgetUse[]) {
  const { question, total } = monthSoFar.answer;
  const amount = total?.amount ?? null;
  if (amount === null) return undefined;
  const estimated = question.metric === "estimated_cost" ? "an estimated " : "";
  const { budget, forecast } = monthForecast(monthSoFar, budgets);
  const heading = forecast ? `, heading for ${forecastText(forecast, question)}` : "";
  const share = budget ? `, ${budgetText(budget, question)}` : "";
  return `${monthName(monthSoFar.period.start)}: ${estimated}${quantityText(amount, question)} so far${heading}${share}.`;
}

/** "$239,000 ($232,000 to $246,000)"; an interval that rounds to one number is left out. */
export function forecastText({ forecast, low, high }: Forecast, measure: Measure): string {
  const [from, to] = [estimateText(low, measure), estimateText(high, measure)];
  return `${estimateText(forecast, measure)}${from === to ? "" : ` (${from} to ${to})`}`;
}

/** Finds the month's budget for the same usage as the amount. If it has a forecast, that one is shown everywhere, so that a page has only one. */
export function monthForecast(
  { answer, forecast }: NonNullable<Overview["monthSoFar"]>,
  budgets: readonly BudgetUse[],
) {
  const { question, projectCount } = answer;
  const budget = budgets.find(
    ({ scope, period, currency, metric, projectIds, isOver }) =>
      scope === "all" &&
      period === "month" &&
      !isOver &&
      projectIds.length === projectCount &&
      (question.currency === null ? metric === question.metric : currency === question.currency),
  );
  if (!budget?.forecast) return { budget, forecast };
  const { forecast: amount, forecastLow, forecastHigh } = budget;
  return { budget, forecast: { forecast: amount, low: forecastLow ?? amount, high: forecastHigh ?? amount } };
}

/** From this share on, the sentence says how many times the budget is used up. */
const TIMES_FROM_PERCENT = 200;

function budgetText({ amount, percent, forecastPercent }: BudgetUse, measure: Measure): string {
  const share = Number(forecastPercent ?? percent ?? "0");
  if (share >= TIMES_FROM_PERCENT) return `${(share / 100).toPrecision(2)} times the budget`;
  return `${wholePercent(String(share))} of the budget of ${quantityText(amount, measure)}`;
}

function periodSentence({ cost, total, period }: Overview): string | undefined {
  const { question, total: sum } = cost ?? total;
  if (!sum || sum.amount === null) return undefined;
  return `${periodText(period)}: ${quantityText(sum.amount, question)}${question.metric === "estimated_cost" ? " (estimated)" : ""}.`;
}

const STEADY_SHARE = 0.03;

/** "The 28 days to Nov 25 cost $150, 34% more than Oct 1 – 28, 2026: Call Centre US caused half of the rise, mostly one API key, batch." */
function changeSentence(data: Overview): string | undefined {
  const main = data.cost ?? data.total;
  const { question, total } = main;
  const compared = comparedWindow(main);
  if (!compared || !total?.change || !total.amount || !total.before || isZero(total.before)) return undefined;
  const days = dayCount(data.period);
  const subject = `${days === 1 ? "" : `The ${days} days to `}${dayLabel(data.period.end)}`;
  const share = Number(total.change) / Math.abs(Number(total.before));
  const verb = question.currency === null ? "had" : "cost";
  const amount = quantityText(total.amount, question);
  const before = periodText(compared);
  if (Math.abs(share) < STEADY_SHARE) return `${subject} ${verb} ${amount}, about the same as ${before}.`;
  const percent = changeText(total.amount, total.before).replace(/^[+-]/, "");
  const isRise = share > 0;
  const drivers = driversText(data, question.metric, total.change);
  return `${subject} ${verb} ${amount}, ${percent} ${isRise ? "more" : "less"} than ${before}${drivers}.`;
}

/**
 * Names the group that caused the most of the change by the first split, such as a project. Adds the API key that caused the most, if that is
 * more than half as much.
 */
function driversText({ splits }: Overview, metric: string, change: string): string {
  const parts = splits
    .filter(({ question, compared }) => question.metric === metric && compared && question.grouping !== "tags")
    .flatMap((split) => driverOf(split, Number(change)) ?? []);
  const [first] = parts;
  if (!first || first.share < 0.2) return "";
  const noun = Number(change) > 0 ? "rise" : "fall";
  const key = parts.find(({ grouping }) => grouping === "accessor");
  const isOneKey = key !== undefined && key !== first && key.share > first.share / 2;
  return `: ${first.name} caused ${shareText(first.share)} of the ${noun}${isOneKey ? `, mostly one ${groupingNoun("accessor")}, ${key.name}` : ""}`;
}

/** The group with the largest share of the change; undefined if every group changed in the other direction. */
function driverOf({ groups, question }: Answer, change: number) {
  const ofChange = groups.map((group) => ({ group, share: Number(group.change ?? "0") / change }));
  const [top] = ofChange.sort((a, b) => b.share - a.share);
  if (!top || top.share <= 0) return undefined;
  return { grouping: question.grouping, share: top.share, name: nameOf(question.grouping, top.group, groups) };
}

function shareText(share: number): string {
  if (share > 1.05) return "more than all";
  if (share > 0.95) return "nearly all";
  if (share > 0.55) return "most";
  if (share > 0.45) return "half";
  return share > 0.3 ? "a third" : "a quarter";
}
