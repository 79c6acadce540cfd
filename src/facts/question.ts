// A question about usage or cost: what is added up, of which days and projects, and by what it is split. Pure.

import type { Window } from "../usage/days.ts";
import { METRICS } from "../usage/metrics.ts";
import { GROUPINGS } from "../usage/series.ts";

export const COSTS = ["estimated_cost", "billed_cost"] as const;
export const ASKED_METRICS = [...METRICS, ...COSTS] as const;
export type AskedMetric = (typeof ASKED_METRICS)[number];

export function isCost(metric: AskedMetric): metric is (typeof COSTS)[number] {
  return metric === "estimated_cost" || metric === "billed_cost";
}

/** What an amount can be split by: the groupings of usage, the line item of a billed cost, and the project. */
export const SPLITS = [...GROUPINGS, "line_item", "project"] as const;
export type Split = (typeof SPLITS)[number];

const COST_SPLITS: Readonly<Record<(typeof COSTS)[number], readonly Split[]>> = {
  estimated_cost: ["none", "model", "project"],
  billed_cost: ["none", "accessor", "deployment", "tags", "line_item", "project"],
};

export function splitsOf(metric: AskedMetric): readonly Split[] {
  return isCost(metric) ? COST_SPLITS[metric] : SPLITS.filter((one) => one !== "line_item");
}

export const SORTS = ["amount", "change"] as const;

export type Question = {
  readonly period: Window;
  /** Left out if the period is compared with none. */
  readonly before?: Window | undefined;
  /** Names or identifiers; left out for all. */
  readonly projects?: readonly string[] | undefined;
  readonly metric: AskedMetric;
  /** Left out for the first by name. */
  readonly currency?: string | undefined;
  readonly grouping: Split;
  /** The name of a filter; left out for all usage. */
  readonly filter?: string | undefined;
  /** The only group that is asked for; its value is null for "no value". */
  readonly group?: { readonly value: string | null } | undefined;
  /** How many groups are listed; the others are added up. */
  readonly limit: number;
  readonly sort: (typeof SORTS)[number];
};

/** What is asked for does not exist, such as an unknown project. The message begins with the parameter's name. */
export class InvalidQuestion extends Error {
  override readonly name = "InvalidQuestion";
}
