// A question about usage, as the parameters of a URL ask it: the Usage page and the read API have the same. Pure.

import { z } from "zod";
import { ASKED_METRICS, InvalidQuestion, type Question, SORTS, SPLITS } from "../../facts/question.ts";
import type { Day } from "../../usage/days.ts";
import { comparedWindow, readView, type View } from "../dashboard/view.ts";

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

/** The parameters that the page and the API have, beside those of readView. */
export const QuestionParameters = z.object({
  project: aText.optional().describe("The name or the identifier of a project; left out, all projects are added up"),
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

/** The parameters that only the page has. */
export const PageParameters = z.object({ chart: oneOf(CHART_KINDS).default("bars") });

const SHARED_PARAMETERS = ["period", "days", "from", "to", "compare", "project"];

/** Throws InvalidQuestion, whose message names the parameter and what it expects. `more` are the parameters that only the caller knows. */
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
    throw new InvalidQuestion("group: expected group or no-value, not both");
  if (question.grouping === "none" && (noValue ?? group) !== undefined)
    throw new InvalidQuestion("group: expected none, as there are no groups where grouping is none");
  const value = noValue === undefined ? group : null;
  return {
    ...question,
    period: { start: view.period.start, end: view.period.end },
    before: comparedWindow(view),
    projects: project === undefined ? undefined : [project],
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
    throw new InvalidQuestion(`unknown parameter ${JSON.stringify(unknown)}; there are ${known.join(", ")}`);
  const view = readView(new URLSearchParams([...query].filter(([name]) => SHARED_PARAMETERS.includes(name))), today);
  if ("error" in view) throw new InvalidQuestion(view.error);
  const own = Object.entries(givenParameters(query)).filter(([name]) => !SHARED_PARAMETERS.includes(name));
  return { ...view, more: own };
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
  const [issue] = parsed.error.issues;
  throw new InvalidQuestion([...(issue?.path ?? []), issue?.message].join(": "));
}
