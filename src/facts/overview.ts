// How much was used, of what and by whom: what the overview and the report file show.

import type { Window } from "../usage/days.ts";
import { amounts, type Figure, figures } from "./amounts.ts";
import type { Answer } from "./answer.ts";
import { mainMetric, totalSplit } from "./changes.ts";
import { type Forecast, forecasts } from "./money.ts";
import type { Question, Split } from "./question.ts";
import type { Run } from "./scope.ts";

export type Overview = {
  readonly period: Window;
  readonly before: Window | undefined;
  /** Every metric that the service sent. */
  readonly figures: readonly Figure[];
  /** The total of the first metric among them, with what it lacks. */
  readonly total: Answer;
  readonly totalFrom: Split;
  /** Of the current month; "left out" of too many projects. */
  readonly forecasts: readonly Forecast[] | "left out";
  /** By model, key and tags, as far as they are exported. */
  readonly splits: readonly Answer[];
};

type OverviewQuestion = Pick<Question, "period" | "before" | "projects">;

const OVERVIEW_SPLITS = ["model", "accessor", "tags"] as const;
/** The chart has a colour for each of 8 groups. */
const LISTED_MAX = 8;
/** The forecast takes two milliseconds a project. */
const FORECAST_PROJECTS_MAX = 200;

/** Throws InvalidQuestion if there is no such project. */
export async function overview(run: Run, asked: OverviewQuestion): Promise<Overview> {
  const none = { currency: undefined, filter: undefined, group: undefined };
  const question = { ...asked, ...none, limit: LISTED_MAX, sort: "amount", metric: "hours" } as const;
  const { totalFrom, available, basis } = await totalSplit(run, { ...question, grouping: "none" });
  const sent = await figures(run, { ...question, grouping: totalFrom }, basis);
  const metric = mainMetric(sent);
  const total = await amounts(run, { ...question, metric, grouping: totalFrom }, { basis });
  const names = sent.map((one) => one.metric);
  const splits: Answer[] = [];
  for (const grouping of OVERVIEW_SPLITS)
    if (available.includes(grouping))
      splits.push(await amounts(run, { ...question, metric, grouping }, { isPart: true }));
  return {
    ...{ period: asked.period, before: asked.before, figures: sent, total, totalFrom, splits },
    forecasts:
      total.projectCount > FORECAST_PROJECTS_MAX ? "left out" : await forecasts(run, asked.period, names, basis.scope),
  };
}
