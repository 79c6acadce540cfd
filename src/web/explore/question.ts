// A question about usage, as the parameters of a URL ask it: the Usage page and the read API have the same. Pure.

import { z } from "zod";
import type { Day, Window } from "../../usage/days.ts";
import { METRICS } from "../../usage/metrics.ts";
import { GROUPINGS, type UsageGrouping } from "../../usage/series.ts";
import { comparedWindow, InvalidView, readView, type View } from "../dashboard/view.ts";

const LISTED_DEFAULT = 20;
const LIMIT_MAX = 1_000;
/** A name of the service or of the configuration is never longer. */
const TEXT_LENGTH_MAX = 2_000;

/** Postgres has no text with NUL. */
export const aText = z
  .string()
  .max(TEXT_LENGTH_MAX, `expected at most ${TEXT_LENGTH_MAX} characters`)
  .refine((text) => !text.includes("\0"), "expected a text without the character NUL");

export const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, { error: ({ input }) => `expected one of ${values.join(", ")}; got ${JSON.stringify(input)}` });

/** How many rows an answer has. */
export function aLimit(byDefault: number) {
  const expected = `expected a whole number from 1 to ${LIMIT_MAX}`;
  return z
    .string()
    .regex(/^[1-9]\d{0,3}$/, expected)
    .refine((text) => Number(text) <= LIMIT_MAX, expected)
    .default(String(byDefault));
}

export const COSTS = ["estimated_cost", "billed_cost"] as const;
/** What can be added up. */
export const ASKED_METRICS = [...METRICS, ...COSTS] as const;
export type AskedMetric = (typeof ASKED_METRICS)[number];

export function isCost(metric: AskedMetric): metric is (typeof COSTS)[number] {
  return metric === "estimated_cost" || metric === "billed_cost";
}

export const SORTS = ["amount", "before", "change", "group"] as const;

/** The parameters that the page and the API have, beside those of readView. */
export const QuestionParameters = z.object({
  project: aText.optional().describe("The name or the identifier of a project; left out, all projects are added up"),
  metric: oneOf(ASKED_METRICS)
    .default("hours")
    .describe(
      "What is added up. estimated_cost: what usage costs by the configured prices, where grouping is model or none; billed_cost: what the service charges, in dollars",
    ),
  currency: aText
    .optional()
    .describe("Of estimated_cost, where prices have several; left out, the first by name. Other metrics ignore it"),
  grouping: oneOf(GROUPINGS)
    .optional()
    .describe(
      "The dimension whose values are the groups; none is the total. Left out, it is model, and none for billed_cost, which is not known by model",
    ),
  filter: aText
    .optional()
    .describe("The name of a configured filter: only the usage that it selects; left out, all usage"),
  group: aText.optional().describe("Only the group with this value"),
  "no-value": oneOf(["yes"]).optional().describe("Only the group of the usage that has no value"),
  limit: aLimit(LISTED_DEFAULT).describe(
    `How many groups are listed, the largest first; at most ${LIMIT_MAX}, and ${LISTED_DEFAULT} if left out`,
  ),
  sort: oneOf(SORTS).default("amount").describe("How the listed groups are ordered: the largest first, or by name"),
});

export const CHART_KINDS = ["bars", "lines"] as const;

/** The parameters that only the page has. */
export const PageParameters = z.object({ chart: oneOf(CHART_KINDS).default("bars") });

export type Question = {
  readonly period: Window;
  /** Undefined if the period is compared with none. */
  readonly before: Window | undefined;
  /** A name or an identifier. */
  readonly project: string | undefined;
  readonly metric: AskedMetric;
  readonly currency: string | undefined;
  readonly grouping: UsageGrouping;
  readonly filter: string | undefined;
  /** The only group that is asked for; its value is null for "no value". */
  readonly group: { readonly value: string | null } | undefined;
  readonly limit: number;
  readonly sort: (typeof SORTS)[number];
};

const SHARED_PARAMETERS = ["period", "days", "from", "to", "compare", "project"];

/** Throws InvalidView, whose message names the parameter and what it expects. `more` are the parameters that only the caller knows. */
export function questionOf(query: URLSearchParams, today: Day, more: readonly string[] = []): Question {
  const view = viewOf(query, today, more);
  const {
    "no-value": noValue,
    group,
    limit,
    project,
    filter,
    currency,
    ...given
  } = parseParameters(QuestionParameters, givenParameters(query));
  const question = { ...given, grouping: given.grouping ?? (given.metric === "billed_cost" ? "none" : "model") };
  if (noValue !== undefined && group !== undefined)
    throw new InvalidView("group: expected group or no-value, not both");
  if (question.grouping === "none" && (noValue ?? group) !== undefined)
    throw new InvalidView("group: expected none, as there are no groups where grouping is none");
  const value = noValue === undefined ? group : null;
  return {
    ...question,
    period: { start: view.period.start, end: view.period.end },
    before: comparedWindow(view),
    project,
    filter,
    currency,
    limit: Number(limit),
    group: value === undefined ? undefined : { value },
  };
}

/** What the question shares with the other pages, and its own parameters as `more`. */
export function viewOf(query: URLSearchParams, today: Day, more: readonly string[] = []): View {
  const known = [...new Set([...SHARED_PARAMETERS, ...Object.keys(QuestionParameters.shape), ...more])];
  const unknown = Object.keys(givenParameters(query)).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new InvalidView(`unknown parameter ${JSON.stringify(unknown)}; there are ${known.join(", ")}`);
  const view = readView(new URLSearchParams([...query].filter(([name]) => SHARED_PARAMETERS.includes(name))), today);
  if ("error" in view) throw new InvalidView(view.error);
  const own = Object.entries(givenParameters(query)).filter(([name]) => !SHARED_PARAMETERS.includes(name));
  return { ...view, more: own };
}

/** An empty parameter counts as left out, as a form sends it. */
export function givenParameters(query: URLSearchParams): Readonly<Record<string, string>> {
  const given = [...query].filter(([, value]) => value !== "");
  if (new Set(given.map(([name]) => name)).size < given.length) throw new InvalidView("expected each parameter once");
  return Object.fromEntries(given);
}

/** Throws InvalidView about the first parameter that is wrong. */
export function parseParameters<T extends z.ZodType>(schema: T, given: unknown): z.output<T> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new InvalidView([...(issue?.path ?? []), issue?.message].join(": "));
}

/**
 * A request may have several tags or features and then counts in several groups, so sums over such groups would count it more than
 * once.
 */
export function addsUp(grouping: UsageGrouping): boolean {
  return grouping !== "tags" && grouping !== "feature_set";
}
