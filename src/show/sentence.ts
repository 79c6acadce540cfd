// What matters most, in one or two sentences made from facts: the beginning of the overview, of the report file and of a notification. Pure.

import type { Answer } from "../facts/answer.ts";
import type { Forecast, Overview } from "../facts/overview.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import type { Day } from "../usage/days.ts";
import { addDays, dayCount } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import { nameOf } from "./answer-chart.ts";
import { wholePercent } from "./budget-text.ts";
import {
  changeText,
  counted,
  dayLabel,
  estimateText,
  isZero,
  type Measure,
  monthName,
  periodText,
  quantityText,
} from "./format.ts";

/** `trouble` is why nothing new comes in, if that is the case. It comes first, as every number after it is older or too low. */
export function sentences(data: Overview, budgets: readonly BudgetUse[], trouble: string | undefined): string[] {
  const lacking = trouble ?? lackingSentence(data.cost ?? data.total);
  const whole = data.monthSoFar ? monthSentence(data.monthSoFar, budgets) : periodSentence(data);
  return [lacking, whole, changeSentence(data)].filter((one) => one !== undefined);
}

/** For a message: the sentences, then the numbers. */
export function reportText(data: Overview, budgets: readonly BudgetUse[]): string {
  const { total, cost, figures } = data;
  const used = figures.filter(({ amount }) => !isZero(amount));
  const numbers = [
    ...(cost?.total?.amount
      ? [numberText(cost.total.amount, cost.compared ? cost.total.before : null, cost.question)]
      : []),
    ...used.map(({ metric, amount, before }) =>
      numberText(amount, total.compared ? before : null, { metric, currency: null }),
    ),
  ];
  if (numbers.length === 0) return `Nothing is known of ${periodText(data.period)}.`;
  return [...sentences(data, budgets, undefined), `${periodText(data.period)}: ${numbers.join("; ")}.`].join(" ");
}

function numberText(amount: string, before: string | null, measure: Measure): string {
  return `${quantityText(amount, measure)}${before === null ? "" : ` (${changeText(amount, before)})`}`;
}

/** "The numbers of Nov 20 – Nov 22 are too low: they are not complete." */
function lackingSentence({ lacking, days, total }: Answer): string | undefined {
  const { incompleteDays, unreadDays } = lacking;
  const lackingDays = [...incompleteDays, ...unreadDays].sort();
  const [first, last] = [lackingDays[0], lackingDays.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  if (lackingDays.length === days.length && incompleteDays.length === 0) return "None of these days was read.";
  const isStretch = dayCount({ start: first, end: last }) === lackingDays.length;
  if (isStretch && incompleteDays.length === 0 && first === days[0]?.day) {
    return `The numbers begin on ${dayLabel(addDays(last, 1))}: the days before were not read.`;
  }
  if (isStretch && incompleteDays.length === 0 && last === days.at(-1)?.day)
    return `The numbers end on ${dayLabel(addDays(first, -1))}: the days after were not read yet.`;
  const which = isStretch
    ? spanText(first, last)
    : `${counted(lackingDays.length, "day")} from ${spanText(first, last)}`;
  const isOne = lackingDays.length === 1;
  if (incompleteDays.length > 0 && !total?.amount) return `There are no numbers of ${which}, which could not be read.`;
  return incompleteDays.length > 0
    ? `The numbers of ${which} are too low: ${isOne ? "it is" : "they are"} not complete.`
    : `Not in the numbers: ${which}, which ${isOne ? "was" : "were"} not read.`;
}

function spanText(first: Day, last: Day): string {
  return first === last ? dayLabel(first) : `${dayLabel(first)} – ${dayLabel(last)}`;
}

/** "November: $165,519 so far, heading for $239,000 ($232,000 to $246,000), 4.1 times the budget." */
function monthSentence(monthSoFar: NonNullable<Overview["monthSoFar"]>, budgets: readonly BudgetUse[]) {
  const { question, total } = monthSoFar.total;
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

/** The month's budget of all that the amount is of, if there is one, and its forecast, so that a page has one. */
export function monthForecast({ total, forecast }: NonNullable<Overview["monthSoFar"]>, budgets: readonly BudgetUse[]) {
  const { question, projectCount } = total;
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

/** "That is 34% more than in the 28 days before: Call Centre US caused half of the rise, mostly one API key, agent-production." */
function changeSentence(data: Overview): string | undefined {
  const { question, total, compared } = data.cost ?? data.total;
  if (!compared || !total?.change || !total.amount || !total.before || isZero(total.before)) return undefined;
  const days = dayCount(data.period);
  const last = `The ${days === 1 ? "day" : `${days} days`} to ${dayLabel(data.period.end)}`;
  const share = Number(total.change) / Math.abs(Number(total.before));
  const verb = question.currency === null ? "had" : "cost";
  const amount = quantityText(total.amount, question);
  if (Math.abs(share) < STEADY_SHARE) return `${last} ${verb} ${amount}, about the same as before.`;
  const percent = changeText(total.amount, total.before).replace(/^[+-]/, "");
  const isRise = share > 0;
  const drivers = driversText(data, question.metric, total.change);
  return `${last} ${verb} ${amount}, ${percent} ${isRise ? "more" : "less"} than before${drivers}.`;
}

/** The project that changed the most, and the key if it did most of that; without projects what the first split has. */
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

function driverOf({ groups, question }: Answer, change: number) {
  const ofChange = groups.map((group) => ({ group, share: Number(group.change ?? "0") / change }));
  const [top] = ofChange.sort((a, b) => b.share - a.share);
  if (!top) return undefined;
  return { grouping: question.grouping, share: top.share, name: nameOf(question.grouping, top.group, groups) };
}

function shareText(share: number): string {
  if (share > 1.05) return "more than all";
  if (share > 0.95) return "nearly all";
  if (share > 0.55) return "most";
  if (share > 0.45) return "half";
  return share > 0.3 ? "a third" : "a quarter";
}
