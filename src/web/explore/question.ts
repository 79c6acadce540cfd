// A question about usage, as the parameters of a URL ask it: the Usage page and the read API have the same. Pure.

import { z } from "zod";
import { ASKED_METRICS, InvalidQuestion, type Question, SORTS, SPLITS } from "../../facts/question.ts";
import type { Day } from "../../usage/days.ts";
import { COMPARISONS, DAYS_MAX } from "../../usage/days.ts";
import { comparedWindow, PERIOD_TITLES, readView, type View } from "../dashboard/view.ts";

const LISTED_DEFAULT = 20;
const LIMIT_MAX = 1_000;
/** A name of the service or of the configuration is never longer. */
const TEXT_LENGTH_MAX = 2_000;

/** Postgres has no text with NUL. */
export const aText = z
  .string("expected each parameter once")
  .max(TEXT_LENGTH_MAX, `expected at most ${TEXT_LENGTH_MAX} characters`)
  .refine((text) => !text.includes("\0"), "expected a text without the character NUL");

export const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, { error: ({ input }) => `expected one of ${values.join(", ")}; got ${JSON.stringify(input)}` });

export function aNumber(max: number, byDefault: number) {
  const expected = `expected a whole number from 1 to ${max}`;
  return z
    .string("expected each parameter once")
    .regex(/^[1-9]\d{0,5}$/, expected)
    .refine((text) => Number(text) <= max, expected)
    .default(String(byDefault));
}

/** How many rows an answer has. */
export const aLimit = (byDefault: number) => aNumber(LIMIT_MAX, byDefault);

/** The parameters of an address; any other is an error. */
export function parameters<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(", ");
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? `unknown parameter ${JSON.stringify(issue.keys[0])}; there are ${known}`
        : undefined,
  });
}

/** The parameters that say of which days a page is. */
const VIEW_PARAMETERS = {
  period: oneOf(Object.keys(PERIOD_TITLES) as [string, ...string[]])
    .optional()
    .describe("Complete days until yesterday, or a month. Left out, 28d, unless from and to are given"),
  days: aText.optional().describe("How many complete days until yesterday, instead of period"),
  from: aText.optional().describe(`The first day, in UTC, as YYYY-MM-DD. There are at most ${DAYS_MAX} days`),
  to: aText.optional().describe("The last day, in UTC"),
  compare: oneOf(COMPARISONS)
    .default("before")
    .describe(
      "before: of a whole calendar month, also by from and to, the calendar month before, and of other days as many days, whole weeks earlier, so that weekdays are compared with the same weekdays; year: the same dates a year before; none: no comparison",
    ),
  project: aText.optional().describe("The name or the identifier of a project; left out, all projects are added up"),
};

/** What the Usage page and the read API can be asked. */
export const QuestionParameters = parameters({
  ...VIEW_PARAMETERS,
  metric: oneOf(ASKED_METRICS)
    .default("hours")
    .describe(
      "What is added up. estimated_cost: what usage costs by the configured prices, where grouping is model, project or none; billed_cost: what the service charges, in dollars",
    ),
  currency: aText
    .optional()
    .describe("Of estimated_cost, where prices have several; left out, the first by name. Other metrics ignore it"),
  grouping: oneOf(SPLITS)
    .optional()
    .describe(
      "The dimension whose values are the groups, or project; none is the total; line_item is of billed_cost only. Left out, it is model, and none for billed_cost, which is not known by model",
    ),
  filter: aText
    .optional()
    .describe("The name of a configured filter: only the usage that it selects; left out, all usage"),
  group: aText.optional().describe("Only the group with this value"),
  "no-value": oneOf(["yes"]).optional().describe("Only the group of the usage that has no value"),
  limit: aLimit(LISTED_DEFAULT).describe(
    `How many groups are listed, the largest first; at most ${LIMIT_MAX}, and ${LISTED_DEFAULT} if left out`,
  ),
  sort: oneOf(SORTS)
    .default("amount")
    .describe(
      "How the groups are ordered: the largest first, or by name; by change those are listed that changed the most",
    ),
});

export const CHART_KINDS = ["bars", "lines"] as const;

export const PageParameters = parameters({ ...QuestionParameters.shape, chart: oneOf(CHART_KINDS).default("bars") });

/** Throws InvalidQuestion, whose message names the parameter and what it expects. */
export function questionOf(asked: z.output<typeof QuestionParameters>, today: Day): Question {
  const { metric, currency, filter, group, limit, sort, project, "no-value": noValue } = asked;
  const grouping = asked.grouping ?? (metric === "billed_cost" ? "none" : "model");
  if (noValue !== undefined && group !== undefined)
    throw new InvalidQuestion("group: expected group or no-value, not both");
  if (grouping === "none" && (noValue ?? group) !== undefined)
    throw new InvalidQuestion("group: expected none, as there are no groups where grouping is none");
  const view = viewOf(asked, today);
  const value = noValue === undefined ? group : null;
  return {
    ...{ metric, currency, grouping, filter, sort },
    period: { start: view.period.start, end: view.period.end },
    before: comparedWindow(view),
    projects: project === undefined ? undefined : [project],
    limit: Number(limit),
    group: value === undefined ? undefined : { value },
  };
}

type Given = Readonly<Record<string, string | undefined>>;

/** What the question shares with the other pages. */
export function viewOf(given: Given, today: Day): View {
  const query = new URLSearchParams();
  for (const name of Object.keys(VIEW_PARAMETERS)) query.set(name, given[name] ?? "");
  const view = readView(query, today);
  if ("error" in view) throw new InvalidQuestion(view.error);
  return view;
}

/** Those that only the Usage page has; links to other pages leave them out. */
export function ownParameters(given: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(given).filter(([name]) => !Object.hasOwn(VIEW_PARAMETERS, name));
}

/** An empty parameter counts as left out, as a form sends it. */
export function givenParameters(query: URLSearchParams): Readonly<Record<string, string>> {
  const given = [...query].filter(([, value]) => value !== "");
  if (new Set(given.map(([name]) => name)).size < given.length)
    throw new InvalidQuestion("expected each parameter once");
  return Object.fromEntries(given);
}

/** Throws InvalidQuestion about the first parameter that is wrong. */
export function parseParameters<T extends z.ZodType>(schema: T, given: unknown): z.output<T> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new InvalidQuestion(problemOf(parsed.error));
}

/** A sentence about the first parameter that is wrong. */
export function problemOf({ issues: [issue] }: Pick<z.ZodError, "issues">): string {
  return [...(issue?.path ?? []), issue?.message].join(": ");
}
