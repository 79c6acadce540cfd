// Why the estimated cost changed from one period to another: the data, and what they say in plain words. Amounts are exact decimal
// texts. Pure.

import type { Window } from "../usage/days.ts";
import { changeText, counted, isZero, roundedText, windowText } from "./format.ts";
import { type Amounts, leftOutSentences, type Sentence, signedText } from "./usage-change.ts";

/** The change of the cost in one currency. The parts add up to it. */
export type CostChange = Amounts & {
  readonly currency: string;
  /** The projects with such cost, of those whose cost is estimated. */
  readonly projects: readonly string[];
  /** Without the days that are not compared. */
  readonly compared: Amounts & Effects;
  /** Days that are compared, and days of either period that were not read by model; counted for each project. */
  readonly daysCompared: number;
  readonly daysLacking: number;
  readonly isFinal: boolean;
  /** How many models have usage without a price, which is in no amount. */
  readonly unpricedModels: number;
  /** The models, those with the largest change first; then the other parts. */
  readonly parts: readonly CostPart[];
};

/** Both add up to the change. */
type Effects = {
  /** The change in quantity, at the average price of the period before. */
  readonly volume: string;
  /** The rest: other prices, or another mix of them. */
  readonly price: string;
};

export type CostPart = Amounts & {
  /** "others": the models that are not shown; "days not compared": the days that only one of the two periods has. */
  readonly part: "group" | "others" | "days not compared";
  /** The model; null for no value, and if it is no group. */
  readonly group: string | null;
  /** Null for days that are not compared. */
  readonly volume: string | null;
  readonly price: string | null;
  /** Null if it is no group. */
  readonly status: "new" | "vanished" | "changed" | "same" | null;
  /** How many models the part has. */
  readonly groups: number;
};

type Periods = { readonly period: Window; readonly before: Window };

/** Everything worth knowing, the most important first. `isRest`: other projects are billed, and not in the estimate. */
export function costSentences(periods: Periods, cost: CostChange, isRest: boolean): readonly Sentence[] {
  return [
    headline(periods, cost),
    ...leftOutSentences(periods, notCompared(cost), cost.daysLacking > 0),
    ...(isRest ? [restSentence(cost)] : []),
    ...contributors(cost),
    ...appeared(cost),
    ...limits(cost),
  ];
}

const PROJECTS_NAMED_MAX = 5;

function restSentence({ projects }: CostChange): Sentence {
  const named = projects.slice(0, PROJECTS_NAMED_MAX);
  const more = projects.length - named.length;
  const names = named.flatMap((group, i): Sentence => [i > 0 ? ", " : "", { grouping: "project", group }]);
  return [
    "It is the estimate of projects whose billing was read on fewer days, or not at all: ",
    ...names,
    more > 0 ? ` and ${more} more.` : ".",
  ];
}

export function costTitle({ currency }: CostChange): string {
  return `Estimated cost in ${currency}`;
}

function notCompared({ parts }: CostChange): CostPart | undefined {
  return parts.find(({ part }) => part === "days not compared");
}

function headline({ period, before }: Periods, cost: CostChange): Sentence {
  const { compared, daysCompared } = cost;
  const [title, was, is] = [costTitle(cost), windowText(before), windowText(period)];
  if (daysCompared === 0) return [`${title} can't be compared: no day was read by model both in ${is} and in ${was}.`];
  const onDays = notCompared(cost) ? " on the days that both have" : "";
  if (isZero(compared.change))
    return [`${title} did not change${onDays}: ${roundedText(compared.after)} in ${is} as in ${was}.`];
  const verb = compared.change.startsWith("-") ? "fell" : "rose";
  const percent = changeText(compared.after, compared.before);
  const by = /%$/.test(percent) ? ` by ${percent.replace(/^[+-]/, "")}` : "";
  const amounts = `from ${roundedText(compared.before)} (${was}) to ${roundedText(compared.after)} (${is})`;
  return [`${title} ${verb}${by}${onDays}, ${amounts}: ${effectsText(compared)}.`];
}

function effectsText({ volume, price }: Effects): string {
  const usage = `${volume.startsWith("-") ? "less" : "more"} usage (${signedText(volume)})`;
  const prices = `${price.startsWith("-") ? "lower" : "higher"} prices (${signedText(price)})`;
  if (isZero(price)) return usage;
  return isZero(volume) ? prices : `${usage} and ${prices}`;
}

const CONTRIBUTORS_MAX = 3;

function contributors({ parts, compared }: CostChange): readonly Sentence[] {
  const largest = parts.filter(({ part, change }) => part === "group" && !isZero(change)).slice(0, CONTRIBUTORS_MAX);
  if (largest.length === 0) return [];
  const named = largest.map(({ group, change, volume, price }, i): Sentence => {
    const ofAll = i === 0 && !isZero(compared.change) ? ` of ${signedText(compared.change)}` : "";
    const effects =
      price === null || volume === null || isZero(price)
        ? ""
        : ` (usage ${signedText(volume)}, prices ${signedText(price)})`;
    const verb = i === 0 && ofAll !== "" ? " accounts for " : " ";
    return [i > 0 ? ", " : "", { grouping: "model", group }, `${verb}${signedText(change)}${ofAll}${effects}`];
  });
  return [["By model, ", ...named.flat(), "."]];
}

function appeared({ parts }: CostChange): readonly Sentence[] {
  return (["new", "vanished"] as const).flatMap((status): Sentence[] => {
    const named = parts.filter((part) => part.status === status).slice(0, CONTRIBUTORS_MAX);
    if (named.length === 0) return [];
    const names = named.flatMap(
      ({ group, change }, i): Sentence => [i > 0 ? ", " : "", { grouping: "model", group }, ` (${signedText(change)})`],
    );
    return [[`${status === "new" ? "New" : "Vanished"} by model: `, ...names, "."]];
  });
}

function limits({ unpricedModels, daysLacking, isFinal }: CostChange): readonly Sentence[] {
  return [
    ...(unpricedModels > 0
      ? [[`Usage of ${counted(unpricedModels, "model")} has no price and is not in these amounts.`]]
      : []),
    ...(daysLacking > 0 ? [[`${counted(daysLacking, "day was", "days were")} not read by model.`]] : []),
    ...(isFinal ? [] : [["Not all of these days are final, so the amounts may still change."]]),
  ];
}
