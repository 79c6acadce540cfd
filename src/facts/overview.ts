// What usage costs, how much was used, of what and by whom: what the overview and the report file show.

import type { Day, Window } from "../usage/days.ts";
import { amounts, type Figure, figures } from "./amounts.ts";
import type { Answer } from "./answer.ts";
import { mainMetric, totalSplit } from "./changes.ts";
import { type CostSource, costSource, type Money, money } from "./money.ts";
import { type Question, type Split, splitsOf } from "./question.ts";
import type { Run } from "./scope.ts";

export type Overview = {
  readonly period: Window;
  readonly before: Window | undefined;
  /** Every metric that the service sent. */
  readonly figures: readonly Figure[];
  /** The total of the first metric among them, with what it lacks. */
  readonly total: Answer;
  readonly totalFrom: Split;
  /** The cost of the period; undefined if none is known. */
  readonly cost: Answer | undefined;
  /** Of the current month; undefined if the period has no day of it. */
  readonly money: Money | undefined;
  /** By project, model, line item, key and tags, as far as they are exported: of the cost, or of the main metric where cost has no such split. */
  readonly splits: readonly Answer[];
};

export type OverviewQuestion = Pick<Question, "period" | "before" | "projects">;

const OVERVIEW_SPLITS = ["project", "line_item", "model", "accessor", "tags"] as const;
/** Enough to find among them what rose the most. */
const LISTED_MAX = 100;

/** Throws InvalidQuestion if there is no such project. */
export async function overview(run: Run, asked: OverviewQuestion, today: Day): Promise<Overview> {
  const none = { currency: undefined, filter: undefined, group: undefined };
  const question = { ...asked, ...none, limit: LISTED_MAX, sort: "amount", metric: "hours" } as const;
  const { totalFrom, available, basis } = await totalSplit(run, { ...question, grouping: "none" });
  const sent = await figures(run, { ...question, grouping: totalFrom }, basis);
  const metric = mainMetric(sent);
  const total = await amounts(run, { ...question, metric, grouping: totalFrom }, { basis });
  const source = await costSource(run, asked, total.projectCount);
  const cost = source && (await amounts(run, { ...question, metric: source.metric, grouping: source.totalFrom }));
  const main: CostSource | { metric: typeof metric; totalFrom: Split } = source ?? { metric, totalFrom };
  const splits: Answer[] = [];
  for (const grouping of OVERVIEW_SPLITS) {
    const ofCost = cost && splitsOf(cost.question.metric).includes(grouping) && isKnown(cost, grouping);
    if (!ofCost && !(available.includes(grouping) && !(grouping === "model" && splits.some(isOfLineItems)))) continue;
    if (grouping === "project" && total.projectCount < 2) continue;
    const split = { ...question, metric: ofCost ? cost.question.metric : metric, grouping };
    splits.push(await amounts(run, split, { isPart: true }));
  }
  const isCurrent = asked.period.end.slice(0, 7) >= today.slice(0, 7);
  return {
    ...{ period: asked.period, before: asked.before, figures: sent, total, totalFrom, cost, splits },
    money: isCurrent ? await money(run, { ...question, metric: main.metric }, main.totalFrom, today) : undefined,
  };
}

function isKnown({ available }: Answer, grouping: Split): boolean {
  return available.groupings.includes(grouping);
}

function isOfLineItems({ question }: Answer): boolean {
  return question.grouping === "line_item";
}
