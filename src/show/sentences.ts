// Facts in plain words: what matters most, why usage or cost rose or fell, and what amounts lack. Pure.

import { type Answer, askedPeriods } from "../facts/answer.ts";
import type { Change, ChangePart, ChangeSplit } from "../facts/changes.ts";
import type { Forecast, Overview } from "../facts/overview.ts";
import { present } from "../text.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import type { Day } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import { groupLabel } from "./answer-chart.ts";
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
import { shortName } from "./html.ts";

/** `trouble` says why no new numbers come in, if none do. It comes first, because every number after it is older or too low. */
export function leadSentences(data: Overview, budgets: readonly BudgetUse[], trouble: string | undefined): string[] {
  if (isNew(data)) return ["There are no numbers yet."];
  const main = data.cost ?? data.total;
  const hasChange = main.compared && main.total?.amount != null;
  return present([
    ...(trouble === undefined ? lackingDaysSentences(main) : [trouble]),
    data.monthSoFar ? monthSentence(data.monthSoFar, budgets) : !hasChange && periodSentence(main),
    hasChange && headline(main),
    hasChange && driversSentence(main, data.splits),
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
  return [...leadSentences(data, budgets, undefined), `${periodText(data.period)}: ${numbers.join("; ")}.`].join(" ");
}

/** The cost, if it is known, and each metric that was used. */
export function usedFigures({ total, cost, figures }: Overview) {
  const sum = cost?.total;
  const used = figures
    .filter(({ amount }) => !isZero(amount))
    .map((one) => ({ ...one, measure: { metric: one.metric, currency: null }, isCompared: total.compared }));
  if (!cost || sum?.amount == null) return used;
  return [{ ...sum, measure: cost.question, amount: sum.amount, isCompared: cost.compared }, ...used];
}

/** The sentence about incomplete days comes first. */
export function lackingDaysSentences(answer: Answer): readonly string[] {
  const { incompleteDays, unreadDays } = answer.lacking;
  const incomplete = daysText(incompleteDays);
  const amounts = [...answer.groups.map(({ byDay }) => byDay), answer.otherByDay];
  const hasNumber = ({ day }: Answer["days"][number], i: number) =>
    incompleteDays.includes(day) && amounts.some((byDay) => byDay?.[i] != null);
  const text = answer.days.some(hasNumber)
    ? `The numbers of ${incomplete} are too low: not all of it could be read.`
    : `There are no numbers for ${incomplete}, which could not be read.`;
  return present([incompleteDays.length > 0 && text, unreadDays.length > 0 && unreadText(answer)]);
}

/** If all unread days are at one end of the period and the others are complete, the text says where the numbers begin or end. */
function unreadText({ days, lacking: { incompleteDays, unreadDays } }: Answer): string {
  const read = days.map(({ day }) => day).filter((day) => !unreadDays.includes(day));
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
  if (total?.amount == null) return undefined;
  const estimated = question.metric === "estimated_cost" ? "an estimated " : "";
  const { budget, forecast } = monthForecast(monthSoFar, budgets);
  const heading = forecast ? `, heading for ${forecastText(forecast, question)}` : "";
  const share = budget ? `, ${budgetText(budget, question)}` : "";
  return `${monthName(monthSoFar.period.start)}: ${estimated}${quantityText(total.amount, question)} so far${heading}${share}.`;
}

/** "$239,000 ($232,000 to $246,000)"; an interval that rounds to one number is left out. */
export function forecastText({ forecast, low, high }: Forecast, measure: Measure): string {
  const [from, to] = [estimateText(low, measure), estimateText(high, measure)];
  return `${estimateText(forecast, measure)}${from === to ? "" : ` (${from} to ${to})`}`;
}

/** Finds the month's budget for the same usage. The budget's forecast, if it has one, replaces the month's, as a page shows only one. */
function monthForecast({ answer, forecast }: NonNullable<Overview["monthSoFar"]>, budgets: readonly BudgetUse[]) {
  const { question, projectCount } = answer;
  const budget = budgets.find(
    ({ scope, period, currency, metric, projectIds, isOver: isPeriodOver }) =>
      scope === "all" &&
      period === "month" &&
      !isPeriodOver &&
      projectIds.length === projectCount &&
      (question.currency === null ? metric === question.metric : currency === question.currency),
  );
  if (!budget?.forecast) return { budget, forecast };
  const { forecast: amount, forecastLow, forecastHigh } = budget;
  return { budget, forecast: { forecast: amount, low: forecastLow ?? amount, high: forecastHigh ?? amount } };
}

/** "83% of the budget of $1,000"; from 200 % on "4.1 times the budget". */
function budgetText({ amount, percent, forecastPercent }: BudgetUse, measure: Measure): string {
  const share = forecastPercent ?? percent ?? "0";
  const times = Number((Number(share) / 100).toPrecision(2));
  return Number(share) >= 200
    ? `${roundedText(String(times))} times the budget`
    : `${wholePercent(share)} of the budget of ${quantityText(amount, measure)}`;
}

function periodSentence(answer: Answer): string | undefined {
  const { question, total } = answer;
  if (total?.amount == null) return undefined;
  return `${metricName(question.metric)} in ${periodText(askedPeriods(answer).period)}: ${quantityText(total.amount, question)}.`;
}

/** No cause is named for a change by a smaller share: groups that rose and fell by far more may add up to it. */
const STEADY_SHARE = 0.03;

/** Words for the share of a change that one group caused, each with the smallest share it is used for. A smaller share gets no sentence. */
const SHARE_TEXTS = [
  [1.05, "more than all"],
  [0.995, "all"],
  [0.95, "nearly all"],
  [0.55, "most"],
  [0.45, "half"],
  [0.3, "a third"],
  [0.2, "a quarter"],
] as const;

/** "Call Centre US caused half of the rise, mostly one API key, batch." The key is named if its share is over half of that of the first group. */
function driversSentence({ question, total }: Answer, splits: Overview["splits"]): string | undefined {
  const change = Number(total?.change ?? "0");
  if (Math.abs(change) <= STEADY_SHARE * Math.abs(Number(total?.before ?? "0"))) return undefined;
  const drivers = splits
    .filter((one) => one.question.metric === question.metric && one.compared && one.question.grouping !== "tags")
    .flatMap((split) => driverOf(split, change) ?? []);
  const [first] = drivers;
  const share = first && SHARE_TEXTS.find(([from]) => first.share >= from)?.[1];
  if (!share) return undefined;
  const key = drivers.find(({ grouping }) => grouping === "accessor");
  const isOneKey = key !== undefined && key !== first && key.share > first.share / 2;
  // The name of a key includes its project where other keys have the same comment.
  const mostly = isOneKey
    ? `, mostly one ${groupingNoun("accessor")}, ${key.name.replace(` (${first.name})`, "")}`
    : "";
  return `${first.name} caused ${share} of the ${change > 0 ? "rise" : "fall"}${mostly}.`;
}

/** The group with the largest share of the change; undefined if every group changed in the other direction. */
function driverOf({ groups, question }: Answer, change: number) {
  const [top] = groups
    .map((group) => ({ group, share: Number(group.change ?? "0") / change }))
    .sort((a, b) => b.share - a.share);
  if (!top || top.share <= 0) return undefined;
  return { grouping: question.grouping, share: top.share, name: groupLabel(question.grouping, top.group, groups) };
}

/** Everything worth knowing of one metric, the most important first. */
export function changeSentences(change: Change): readonly string[] {
  const { days, lacking, question, projects, projectCount } = change.answer;
  const settling = days.filter(({ state }) => state === "settling").map(({ day }) => day);
  return present([
    headline(change.answer),
    ...reasonSentences(change),
    // The cost is billed for some projects and estimated for others, so each of the two names its projects.
    question.currency !== null && `Projects in it: ${namesText(projects.slice(0, 5), projectCount)}.`,
    ...lackingSentences(lacking),
    settling.length > 0 &&
      `${counted(settling.length, "day is", "days are")} not final yet and may still change: ${daysText(settling)}.`,
  ]);
}

export function reasonSentences({ answer, splits }: Change): readonly string[] {
  return present([...splits.map((split) => splitSentence(answer.question, split)), ...splits.map(notSplitSentence)]);
}

function notSplitSentence({ grouping, lacking }: ChangeSplit): string | undefined {
  const unread = [...lacking.unreadDays, ...lacking.unreadDaysBefore];
  const lack = lackText(unread, [...lacking.incompleteDays, ...lacking.incompleteDaysBefore]);
  return lack && `It can't be split by ${groupingNoun(grouping)}: ${lack} by ${groupingNoun(grouping)}.`;
}

/** What the amounts leave out, besides days. */
export function lackingSentences(lacking: Answer["lacking"]): readonly string[] {
  const { projectsLeftOut, projectsLeftOutCount, projectsEnded, projectsEndedCount, otherCurrencies } = lacking;
  return present([
    lacking.unpricedModels > 0 &&
      `Not in the cost, as it has no price: ${lacking.unpricedMetrics.map(metricUnit).join(", ")} (${counted(lacking.unpricedModels, "model")}).`,
    otherCurrencies.length > 0 && `Not in these amounts: usage that is priced in ${otherCurrencies.join(", ")}.`,
    projectsLeftOutCount > 0 &&
      `Not in these figures, because their usage is not read in this way: ${namesText(projectsLeftOut, projectsLeftOutCount)}.`,
    projectsEndedCount > 0 &&
      `Only partly in these figures, because they are no longer read: ${namesText(projectsEnded, projectsEndedCount)}.`,
  ]);
}

/** The name for a sentence: on one line, short, and without direction characters. */
export function nameText(name: string, lengthMax?: number): string {
  return shortName(name, lengthMax) || "(blank)";
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
    const unknown = before === undefined || total?.amount == null ? period : before;
    const why = whyNotCompared(answer) ?? `Nothing is known of ${periodText(unknown)}.`;
    return present([periodSentence(answer), why]).join(" ");
  }
  // The year is written only once.
  const nowText = periodText(period);
  const beforeText = periodText(before ?? period).replace(`, ${period.end.slice(0, 4)}`, "");
  if (isZero(total.change))
    return `${title} did not change: ${quantityText(total.amount, question)} in ${nowText} as in ${beforeText}.`;
  const verb = total.change.startsWith("-") ? "fell" : "rose";
  const percent = changeText(total.amount, total.before);
  const by = /%$/.test(percent) ? ` by ${percent.replace(/^[+-]/, "")}` : "";
  return `${title} ${verb}${by}, from ${quantityText(total.before, question)} (${beforeText}) to ${quantityText(total.amount, question)} (${nowText}).`;
}

/** Undefined if nothing is lacking, or there is no period before. A partial period differs from a whole one even if usage did not change. */
export function whyNotCompared(answer: Pick<Answer, "lacking" | "question">): string | undefined {
  const { lacking } = answer;
  const { before } = askedPeriods(answer);
  const reasons = present([
    lackText(lacking.unreadDays, lacking.incompleteDays, " of this period"),
    lackText(lacking.unreadDaysBefore, lacking.incompleteDaysBefore, " of the period before"),
    lacking.projectsEndedCount > 0 && `no longer read: ${namesText(lacking.projectsEnded, lacking.projectsEndedCount)}`,
  ]);
  if (before === undefined || reasons.length === 0) return undefined;
  return `Not compared with ${periodText(before)}: ${reasons.join("; ")}.`;
}

/** An incomplete day was read, but not all of its amounts are known. If `ofPeriod` is given, such as " of this period", the days are listed. */
function lackText(unread: readonly Day[], incomplete: readonly Day[], ofPeriod = "") {
  const listed = (days: readonly Day[]) => ofPeriod && ` (${daysText(days)})`;
  const texts = present([
    unread.length > 0 &&
      `${counted(unread.length, `day${ofPeriod} was`, `days${ofPeriod} were`)} not read${listed(unread)}`,
    incomplete.length > 0 &&
      `${counted(incomplete.length, `day${ofPeriod} is`, `days${ofPeriod} are`)} not complete${listed(incomplete)}`,
  ]);
  return texts.length > 0 ? texts.join(" and ") : undefined;
}

/** "By model: nova-3 +31,278 hours, aura-2 +120 hours (new)." */
function splitSentence(measure: Measure, { grouping, parts }: ChangeSplit): string | undefined {
  const largest = parts.filter((one) => one.part === "group" && !isZero(one.change)).slice(0, 3);
  if (largest.length === 0) return undefined;
  const named = largest.map((part) => {
    const { change, status } = part;
    const name = nameText(groupName(grouping, part, parts));
    return `${name} ${signedText(change, measure)}${status === "new" || status === "vanished" ? ` (${status})` : ""}`;
  });
  // The name of a set of tags contains commas.
  const separator = named.some((one) => one.includes(", ")) ? "; " : ", ";
  return `By ${groupingNoun(grouping)}: ${named.join(separator)}.`;
}

/** The name of a group in plain text. Groups with the same label get different names. */
export function groupName(grouping: string, part: ChangePart, among: readonly ChangePart[]): string {
  return part.label === null && part.group === null ? "(no value)" : groupLabel(grouping, part, among);
}
