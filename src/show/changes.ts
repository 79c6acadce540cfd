// Why usage or cost rose or fell, and what amounts lack, in plain words. Pure.

import { type Answer, askedPeriods } from "../facts/answer.ts";
import type { Change, ChangePart, ChangeSplit } from "../facts/changes.ts";
import { present } from "../text.ts";
import type { Day } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import { shortGroupName } from "./answer-chart.ts";
import {
  changeText,
  counted,
  daysText,
  isZero,
  type Measure,
  metricName,
  metricUnit,
  periodText,
  quantityText,
  signedText,
} from "./format.ts";
import { truncatedName } from "./html.ts";

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
  const unread = lacking.unreadDays.length + lacking.unreadDaysBefore.length;
  const incomplete = lacking.incompleteDays.length + lacking.incompleteDaysBefore.length;
  if (unread + incomplete === 0) return undefined;
  return `By ${groupingNoun(grouping)} it can't be split: ${lackTexts(unread, incomplete).join(" and ")} by it.`;
}

/** Says what the amounts leave out, except days. */
export function lackingSentences(lacking: Answer["lacking"]): readonly string[] {
  const { projectsLeftOut, projectsLeftOutCount, projectsEnded, projectsEndedCount } = lacking;
  const { unpricedModels, unpricedMetrics, otherCurrencies } = lacking;
  return present([
    unpricedModels > 0 &&
      `Not in the cost, as it has no price: ${unpricedMetrics.map(metricUnit).join(", ")} of ${counted(unpricedModels, "model")}.`,
    otherCurrencies.length > 0 && `Not in these amounts: usage that is priced in ${otherCurrencies.join(", ")}.`,
    projectsLeftOutCount > 0 &&
      `Not in these figures, because their usage is not read in this way: ${namesText(projectsLeftOut, projectsLeftOutCount)}.`,
    projectsEndedCount > 0 &&
      `Only partly in these figures, because they are no longer read: ${namesText(projectsEnded, projectsEndedCount)}.`,
  ]);
}

const PROJECTS_NAMED_MAX = 5;
const NAME_CHARACTERS_MAX = 40;

/** The name for a sentence: on one line, short, and without characters that turn the text around. */
function nameText(name: string): string {
  return truncatedName(name, NAME_CHARACTERS_MAX) || "(blank)";
}

/** "a, b and 3 more": `count` is the number of all names. */
export function namesText(names: readonly string[], count: number): string {
  return `${names.map(nameText).join(", ")}${count > names.length ? ` and ${count - names.length} more` : ""}`;
}

function headline(answer: Answer): string {
  const { question, total } = answer;
  const { period, before } = askedPeriods(answer);
  const title = metricName(question.metric);
  const nowText = periodText(period);
  const beforeText = periodText(before ?? period);
  const amount = total?.amount ?? null;
  if (!total || total.change === null || amount === null || total.before === null) {
    const known = amount === null ? "" : `${title} in ${nowText}: ${quantityText(amount, question)}. `;
    return `${known}${whyNotCompared(answer) ?? `Nothing is known of ${beforeText}.`}`;
  }
  if (isZero(total.change))
    return `${title} did not change: ${quantityText(amount, question)} in ${nowText} as in ${beforeText}.`;
  const verb = total.change.startsWith("-") ? "fell" : "rose";
  const percent = changeText(amount, total.before);
  const by = /%$/.test(percent) ? ` by ${percent.replace(/^[+-]/, "")}` : "";
  return `${title} ${verb}${by}, from ${quantityText(total.before, question)} (${beforeText}) to ${quantityText(amount, question)} (${nowText}).`;
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
  const named = [unread, incomplete].filter((days) => days.length > 0).map((days) => ` (${daysText(days)})`);
  const reasons = lackTexts(unread.length, incomplete.length).map((text, i) => `${text}${named[i]}`);
  return reasons.length === 0 ? undefined : `in ${period} ${reasons.join(" and ")}`;
}

/** A day that was read may lack an amount: it is not complete, and must not be called unread. */
function lackTexts(unread: number, incomplete: number): readonly string[] {
  return present([
    unread > 0 && `${counted(unread, "day was", "days were")} not read`,
    incomplete > 0 && `${counted(incomplete, "day is", "days are")} not complete`,
  ]);
}

const NAMED_MAX = 3;

/** "By model: nova-3 +31,278 hours, aura-2 +120 hours (new)." */
function contributors(measure: Measure, { grouping, parts }: ChangeSplit): string | undefined {
  const largest = parts.filter((one) => one.part === "group" && !isZero(one.change)).slice(0, NAMED_MAX);
  if (largest.length === 0) return undefined;
  const named = largest.map((part) => {
    const { group, label, change, status } = part;
    const name = group === null ? "(no value)" : nameText(shortGroupName(label ?? group, part, parts));
    return `${name} ${signedText(change, measure)}${status === "new" || status === "vanished" ? ` (${status})` : ""}`;
  });
  return `By ${groupingNoun(grouping)}: ${named.join(", ")}.`;
}

/** The name of a part that is no group. */
export function partText({ part, groups }: Pick<ChangePart, "part" | "groups">): string {
  return part === "others" ? counted(groups, "other") : part;
}
