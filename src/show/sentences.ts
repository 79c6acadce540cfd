// Facts in plain words: what matters most, for the overview, the report file and a notification; why usage or cost rose or fell; and what amounts
// lack. Pure.

import { type Answer, askedPeriods } from "../facts/answer.ts";
import type { Change, ChangePart, ChangeSplit } from "../facts/changes.ts";
import type { Forecast, Overview } from "../facts/overview.ts";
import { present } from "../text.ts";
import type { Day } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import type { BudgetUse } from "../usage/money.ts";
import { nameOf, shortGroupName } from "./answer-chart.ts";
import {
  changeText,
  counted,
  dayLabel,
  daysText,
  estimateText,
  isZero,
  type Measure,
  metricName,
  metricUnit,
  monthName,
  periodText,
  quantityText,
  roundedText,
  signedText,
  wholePercent,
} from "./format.ts";
import { truncatedName } from "./html.ts";

/** `trouble` is why nothing new comes in, if that is the case. It comes first, as every number after it is older or too low. */
export function sentences(data: Overview, budgets: readonly BudgetUse[], trouble: string | undefined): string[] {
  if (isNew(data)) return ["There are no numbers yet."];
  const main = data.cost ?? data.total;
  const isChange = main.compared && main.total?.amount != null;
  return present([
    ...(trouble === undefined ? lackingDaysSentences(main) : [trouble]),
    data.monthSoFar ? monthSentence(data.monthSoFar, budgets) : !isChange && periodSentence(main),
    isChange && headline(main),
    isChange && driversSentence(main, data.splits),
  ]);
}

/** Whether nothing was ever exported. */
export function isNew({ total }: Overview): boolean {
  return total.projectCount === 0 && total.available.groupings.length === 0;
}

/** For a message: the sentences, then the numbers. */
export function reportText(data: Overview, budgets: readonly BudgetUse[]): string {
  const numbers = usedFigures(data).map(({ measure, amount, before, isCompared }) => {
    const change = isCompared && before !== null ? ` (${changeText(amount, before)})` : "";
    return `${quantityText(amount, measure)}${change}`;
  });
  if (numbers.length === 0) return `Nothing is known of ${periodText(data.period)}.`;
  return [...sentences(data, budgets, undefined), `${periodText(data.period)}: ${numbers.join("; ")}.`].join(" ");
}

/** The cost, if it is known, and each metric that was used. */
export function usedFigures({ total, cost, figures }: Overview) {
  const sum = cost?.total;
  const used = figures.filter(({ amount }) => !isZero(amount));
  return [
    ...(cost && sum?.amount != null
      ? [{ ...sum, measure: cost.question, amount: sum.amount, isCompared: cost.compared }]
      : []),
    ...used.map((one) => ({ ...one, measure: { metric: one.metric, currency: null }, isCompared: total.compared })),
  ];
}

/** Whether an incomplete day has any number. Otherwise none is too low. */
function hasTooLowNumbers({ lacking, days, groups, otherByDay }: Answer): boolean {
  const amounts = [...groups.map(({ byDay }) => byDay), otherByDay];
  return days.some(({ day }, i) => lacking.incompleteDays.includes(day) && amounts.some((byDay) => byDay?.[i] != null));
}

/** The first is about the incomplete days, if there are any. */
export function lackingDaysSentences(answer: Answer): readonly string[] {
  const { incompleteDays, unreadDays } = answer.lacking;
  const incomplete = daysText(incompleteDays);
  const text = hasTooLowNumbers(answer)
    ? `The numbers of ${incomplete} are too low: not all of it could be read.`
    : `There are no numbers for ${incomplete}, which could not be read.`;
  return present([incompleteDays.length > 0 && text, unreadDays.length > 0 && unreadText(answer)]);
}

/** Numbers that begin later or end earlier than the period are right as they are, so nothing is said to be missing between them. */
function unreadText({ days, lacking: { incompleteDays, unreadDays } }: Answer): string {
  const read = days.flatMap(({ day }) => (unreadDays.includes(day) ? [] : day));
  const [first, last] = [read[0], read.at(-1)];
  if (first && last && incompleteDays.length === 0) {
    if (unreadDays.every((day) => day < first))
      return `The numbers begin on ${dayLabel(first)}: the days before were not read.`;
    if (unreadDays.every((day) => day > last))
      return `The numbers end on ${dayLabel(last)}: the days after were not read yet.`;
  }
  return `Not read: ${daysText(unreadDays)}, as the export began later or these days are not due yet.`;
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

/** Finds the month's budget for the same usage as the amount. The budget's forecast, if there is one, replaces the other: a page shows only one. */
function monthForecast({ answer, forecast }: NonNullable<Overview["monthSoFar"]>, budgets: readonly BudgetUse[]) {
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
  const share = forecastPercent ?? percent ?? "0";
  const times = Number((Number(share) / 100).toPrecision(2));
  return Number(share) >= TIMES_FROM_PERCENT
    ? `${roundedText(String(times))} times the budget`
    : `${wholePercent(share)} of the budget of ${quantityText(amount, measure)}`;
}

function periodSentence(answer: Answer): string | undefined {
  const { question, total } = answer;
  if (!total || total.amount === null) return undefined;
  const amount = quantityText(total.amount, question);
  return `${metricName(question.metric)} in ${periodText(askedPeriods(answer).period)}: ${amount}.`;
}

/** A smaller change has no cause worth a sentence: groups that rose and fell by far more may add up to it. */
const STEADY_SHARE = 0.03;

/** How much of a change one group caused, by the smallest share that has the words. A smaller part is not worth a sentence. */
const SHARE_TEXTS = [
  [1.05, "more than all"],
  [0.995, "all"],
  [0.95, "nearly all"],
  [0.55, "most"],
  [0.45, "half"],
  [0.3, "a third"],
  [0.2, "a quarter"],
] as const;

/**
 * "Call Centre US caused half of the rise, mostly one API key, batch." Names the group that caused the most of the change by the first split, such
 * as a project. Adds the API key that caused the most, if that is more than half as much.
 */
function driversSentence({ question, total }: Answer, splits: Overview["splits"]): string | undefined {
  const change = Number(total?.change ?? "0");
  if (Math.abs(change) <= STEADY_SHARE * Math.abs(Number(total?.before ?? "0"))) return undefined;
  const parts = splits
    .filter((one) => one.question.metric === question.metric && one.compared && one.question.grouping !== "tags")
    .flatMap((split) => driverOf(split, change) ?? []);
  const [first] = parts;
  const share = first && SHARE_TEXTS.find(([from]) => first.share >= from)?.[1];
  if (!share) return undefined;
  const key = parts.find(({ grouping }) => grouping === "accessor");
  const isOneKey = key !== undefined && key !== first && key.share > first.share / 2;
  // The name of a key includes its project where other keys have the same comment.
  const mostly = isOneKey
    ? `, mostly one ${groupingNoun("accessor")}, ${key.name.replace(` (${first.name})`, "")}`
    : "";
  return `${first.name} caused ${share} of the ${change > 0 ? "rise" : "fall"}${mostly}.`;
}

/** The group with the largest share of the change; undefined if every group changed in the other direction. */
function driverOf({ groups, question }: Answer, change: number) {
  const ofChange = groups.map((group) => ({ group, share: Number(group.change ?? "0") / change }));
  const [top] = ofChange.sort((a, b) => b.share - a.share);
  if (!top || top.share <= 0) return undefined;
  return { grouping: question.grouping, share: top.share, name: nameOf(question.grouping, top.group, groups) };
}

// Why an amount changed, and what it lacks.

/** Everything worth knowing of one metric, the most important first. */
export function changeSentences(change: Change): readonly string[] {
  const { days, lacking, question, projects, projectCount } = change.answer;
  const settling = days.filter(({ state }) => state === "settling").map(({ day }) => day);
  return present([
    headline(change.answer),
    ...reasonSentences(change),
    // A cost is billed for some projects and estimated for others, so it says which.
    question.currency !== null && `Projects in it: ${namesText(projects.slice(0, PROJECTS_NAMED_MAX), projectCount)}.`,
    ...lackingSentences(lacking),
    settling.length > 0 &&
      `${counted(settling.length, "day is", "days are")} not final yet and may still change: ${daysText(settling)}.`,
  ]);
}

/** Which groups the change comes from. */
export function reasonSentences({ answer, splits }: Change): readonly string[] {
  return present([...splits.map((split) => contributors(answer.question, split)), ...splits.map(notSplitSentence)]);
}

function notSplitSentence({ grouping, lacking }: ChangeSplit): string | undefined {
  const unread = [...lacking.unreadDays, ...lacking.unreadDaysBefore];
  const incomplete = [...lacking.incompleteDays, ...lacking.incompleteDaysBefore];
  if (unread.length + incomplete.length === 0) return undefined;
  return `By ${groupingNoun(grouping)} it can't be split: ${lackTexts(unread, incomplete).join(" and ")} by it.`;
}

/** Says what the amounts leave out, except days. */
export function lackingSentences(lacking: Answer["lacking"]): readonly string[] {
  const { projectsLeftOut, projectsLeftOutCount, projectsEnded, projectsEndedCount } = lacking;
  const { unpricedModels, unpricedMetrics, otherCurrencies } = lacking;
  return present([
    unpricedModels > 0 &&
      `Not in the cost, as it has no price: ${unpricedMetrics.map(metricUnit).join(", ")} (${counted(unpricedModels, "model")}).`,
    otherCurrencies.length > 0 && `Not in these amounts: usage that is priced in ${otherCurrencies.join(", ")}.`,
    projectsLeftOutCount > 0 &&
      `Not in these figures, because their usage is not read in this way: ${namesText(projectsLeftOut, projectsLeftOutCount)}.`,
    projectsEndedCount > 0 &&
      `Only partly in these figures, because they are no longer read: ${namesText(projectsEnded, projectsEndedCount)}.`,
  ]);
}

const PROJECTS_NAMED_MAX = 5;
const NAME_LENGTH_MAX = 40;

/** The name for a sentence: on one line, short, and without characters that turn the text around. */
export function nameText(name: string, lengthMax: number = NAME_LENGTH_MAX): string {
  return truncatedName(name, lengthMax) || "(blank)";
}

/** "a, b and 3 more": `count` is the number of all names. */
export function namesText(names: readonly string[], count: number): string {
  return `${names.map((one) => nameText(one)).join(", ")}${count > names.length ? ` and ${count - names.length} more` : ""}`;
}

function headline(answer: Answer): string {
  const { question, total } = answer;
  const { period, before } = askedPeriods(answer);
  const title = metricName(question.metric);
  if (!total || total.change === null || total.amount === null || total.before === null) {
    const why = whyNotCompared(answer) ?? `Nothing is known of ${periodText(before ?? period)}.`;
    return present([periodSentence(answer), why]).join(" ");
  }
  // The year is said once.
  const nowText = periodText(period);
  const beforeText = periodText(before ?? period).replace(`, ${period.end.slice(0, 4)}`, "");
  if (isZero(total.change))
    return `${title} did not change: ${quantityText(total.amount, question)} in ${nowText} as in ${beforeText}.`;
  const verb = total.change.startsWith("-") ? "fell" : "rose";
  const percent = changeText(total.amount, total.before);
  const by = /%$/.test(percent) ? ` by ${percent.replace(/^[+-]/, "")}` : "";
  return `${title} ${verb}${by}, from ${quantityText(total.before, question)} (${beforeText}) to ${quantityText(total.amount, question)} (${nowText}).`;
}

/**
 * Why there is no change; undefined if every day of both periods was read, or none was to be compared. The difference between a whole and a
 * partial period would look like a change of usage.
 */
export function whyNotCompared(answer: Pick<Answer, "lacking" | "question">): string | undefined {
  const { lacking } = answer;
  const { before } = askedPeriods(answer);
  const { projectsEnded, projectsEndedCount } = lacking;
  const reasons = present([
    lackText("this period", lacking.incompleteDays, lacking.unreadDays),
    lackText("the period before", lacking.incompleteDaysBefore, lacking.unreadDaysBefore),
    projectsEndedCount > 0 && `no longer read: ${namesText(projectsEnded, projectsEndedCount)}`,
  ]);
  if (before === undefined || reasons.length === 0) return undefined;
  return `Not compared with ${periodText(before)}: ${reasons.join("; ")}.`;
}

function lackText(period: string, incomplete: readonly Day[], unread: readonly Day[]): string | undefined {
  const reasons = lackTexts(unread, incomplete, (days) => ` (${daysText(days)})`);
  return reasons.length === 0 ? undefined : `in ${period} ${reasons.join(" and ")}`;
}

/** A day that was read may lack an amount: it is not complete, and must not be called unread. */
function lackTexts(unread: readonly Day[], incomplete: readonly Day[], named = (_: readonly Day[]) => "") {
  return present([
    unread.length > 0 && `${counted(unread.length, "day was", "days were")} not read${named(unread)}`,
    incomplete.length > 0 && `${counted(incomplete.length, "day is", "days are")} not complete${named(incomplete)}`,
  ]);
}

const NAMED_MAX = 3;

/** "By model: nova-3 +31,278 hours, aura-2 +120 hours (new)." */
function contributors(measure: Measure, { grouping, parts }: ChangeSplit): string | undefined {
  const largest = parts.filter((one) => one.part === "group" && !isZero(one.change)).slice(0, NAMED_MAX);
  if (largest.length === 0) return undefined;
  const named = largest.map((part) => {
    const { change, status } = part;
    const name = nameText(shortGroupName(groupName(grouping, part, parts), part, parts));
    return `${name} ${signedText(change, measure)}${status === "new" || status === "vanished" ? ` (${status})` : ""}`;
  });
  // A set of tags has commas of its own.
  const separator = named.some((one) => one.includes(", ")) ? "; " : ", ";
  return `By ${groupingNoun(grouping)}: ${named.join(separator)}.`;
}

/** The name of a group in plain text. Groups with one label are told apart. */
export function groupName(grouping: string, part: ChangePart, among: readonly ChangePart[]): string {
  return part.label === null && part.group === null ? "(no value)" : nameOf(grouping, part, among);
}
