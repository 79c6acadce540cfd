// What a URL asks for: of which days and project a page is, what it compares them with, and what the page Usage & cost and the read API add to
// that. Every state of a page is its URL, so bookmarks and the back button work. Pure.

import { z } from "zod";
import { ASKED_METRICS, InvalidQuestion, type Question, SORTS, SPLITS } from "../facts/question.ts";
import { GRAINS } from "../show/answer-chart.ts";
import {
  addDays,
  COMPARISONS,
  type Comparison,
  comparedPeriod,
  DAYS_DEFAULT,
  DAYS_MAX,
  type Day,
  isDay,
  periodError,
  type Window,
} from "../usage/days.ts";

/** The periods to choose by one click, by the value of the parameter `period`. */
export const PERIOD_TITLES = {
  "7d": "7 days",
  [`${DAYS_DEFAULT}d`]: `${DAYS_DEFAULT} days`,
  "90d": "90 days",
  "this-month": "This month",
  "last-month": "Last month",
};

const LISTED_DEFAULT = 20;
const LIMIT_MAX = 1_000;
/** A name of the service or of the configuration is never longer. */
const TEXT_LENGTH_MAX = 2_000;

// The parameters.

/** Postgres has no text with NUL. */
const aText = z
  .string("expected each parameter once")
  .max(TEXT_LENGTH_MAX, `expected at most ${TEXT_LENGTH_MAX} characters`)
  .refine((text) => !text.includes("\0"), "expected a text without the character NUL");

export const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, { error: ({ input }) => `expected one of ${values.join(", ")}; got ${JSON.stringify(input)}` });

const aLimit = z
  .string("expected each parameter once")
  .refine(
    (text) => /^[1-9]\d{0,3}$/.test(text) && Number(text) <= LIMIT_MAX,
    `expected a whole number from 1 to ${LIMIT_MAX}`,
  )
  .default(String(LISTED_DEFAULT));

export const aMonth = z
  .string("expected each parameter once")
  .refine((text) => /^\d{4}-\d{2}$/.test(text) && isDay(`${text}-01`), "expected a month, as YYYY-MM")
  .optional();

/** Of the current month the whole days so far. Throws InvalidQuestion. */
export function monthOf(month: string | undefined, today: Day): Window {
  if (month === undefined) return namedPeriod("last-month", today);
  const start = `${month}-01`;
  const end = addDays(`${addDays(start, 31).slice(0, 7)}-01`, -1);
  if (month === today.slice(0, 7)) return namedPeriod("this-month", today);
  if (end > today) throw new InvalidQuestion(`month: expected ${today.slice(0, 7)} or before; got ${month}`);
  return { start, end };
}

/** Any other parameter is an error. */
export function parameters<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape).join(", ");
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? `unknown parameter ${JSON.stringify(issue.keys[0])}; there are ${known}`
        : undefined,
  });
}

const VIEW_PARAMETERS = {
  period: oneOf(Object.keys(PERIOD_TITLES) as [string, ...string[]])
    .optional()
    .describe("Complete days until yesterday, or a month. Left out, 28d, unless from and to are given"),
  from: aText.optional().describe(`The first day, in UTC, as YYYY-MM-DD. There are at most ${DAYS_MAX} days`),
  to: aText.optional().describe("The last day, in UTC"),
  compare: oneOf(COMPARISONS)
    .default("before")
    .describe(
      "before: of a whole calendar month, also by from and to, the calendar month before, and of other days as many days, whole weeks earlier, so that weekdays are compared with the same weekdays; year: the same dates a year before; none: no comparison",
    ),
  project: aText.optional().describe("The name or the identifier of a project; left out, all projects are added up"),
};

/** What the page Usage & cost and the read API can be asked. */
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
  limit: aLimit.describe(
    `How many groups are listed, the largest first; at most ${LIMIT_MAX}, and ${LISTED_DEFAULT} if left out`,
  ),
  sort: oneOf(SORTS)
    .default("amount")
    .describe("Which groups are listed: the largest, or by change those that changed the most"),
});

/** What each page can be asked. */
const PARAMETERS = {
  overview: parameters({ ...VIEW_PARAMETERS, by: oneOf(SPLITS).optional() }),
  usage: parameters({ ...QuestionParameters.shape, by: oneOf(GRAINS).default("day") }),
  health: parameters(VIEW_PARAMETERS),
  run: parameters({ ...VIEW_PARAMETERS, id: aText.optional() }),
  report: parameters(VIEW_PARAMETERS),
};
export type AskedPage = keyof typeof PARAMETERS;

/** An empty parameter counts as left out, as a form sends it. Throws InvalidQuestion about the first parameter that is wrong. */
export function parseQuery<Schema extends z.ZodType>(schema: Schema, query: URLSearchParams): z.output<Schema> {
  const given = [...query].filter(([, value]) => value !== "");
  if (new Set(given.map(([name]) => name)).size < given.length)
    throw new InvalidQuestion("expected each parameter once");
  const parsed = schema.safeParse(Object.fromEntries(given));
  if (parsed.success) return parsed.data;
  throw new InvalidQuestion(problemOf(parsed.error));
}

/** A sentence about the first parameter that is wrong. */
export function problemOf({ issues: [issue] }: Pick<z.ZodError, "issues">): string {
  return [...(issue?.path ?? []), issue?.message].join(": ");
}

/** Throws InvalidQuestion, whose message names the parameter and what it expects. */
export function questionOf(asked: z.output<typeof QuestionParameters>, today: Day): Question {
  const { metric, currency, filter, group, limit, sort, project, "no-value": noValue } = asked;
  const grouping = asked.grouping ?? (metric === "billed_cost" ? "none" : "model");
  if (noValue !== undefined && group !== undefined)
    throw new InvalidQuestion("group: expected group or no-value, not both");
  if (grouping === "none" && (noValue ?? group) !== undefined)
    throw new InvalidQuestion("group: expected none, as there are no groups where grouping is none");
  const period = readPeriod(asked, today);
  const value = noValue === undefined ? group : null;
  return {
    ...{ metric, currency, grouping, filter, sort },
    period: { start: period.start, end: period.end },
    before: comparedPeriod(period, asked.compare),
    projects: project === undefined ? undefined : [project],
    limit: Number(limit),
    group: value === undefined ? undefined : { value },
  };
}

// What a page is of.

type Period = Window & {
  /** The value of `period` that asks for it; undefined if the request named the dates. */
  readonly name: string | undefined;
};

/** What the pages share: a link from one to another keeps it. */
export type View = {
  readonly period: Period;
  readonly compare: Comparison;
  /** The name of a project, to show its usage alone. */
  readonly project: string | undefined;
  /** The parameters that only the page itself has; links to other pages leave them out. */
  readonly more: readonly Parameter[];
};

type Parameter = readonly [name: string, value: string];

/** Throws InvalidQuestion. */
export function viewOf(page: AskedPage, query: URLSearchParams, today: Day): View {
  const asked: Asked = parseQuery(PARAMETERS[page], query);
  const more = [...query].filter(([name, value]) => value !== "" && !Object.hasOwn(VIEW_PARAMETERS, name));
  return { period: readPeriod(asked, today), compare: asked.compare, project: asked.project, more };
}

/** What the page Usage & cost answers. Throws InvalidQuestion. */
export function usageQuestion(view: View, today: Day): Question {
  const { by: _, ...asked } = parseQuery(PARAMETERS.usage, new URLSearchParams(viewQuery(view)));
  return questionOf(asked, today);
}

/** The value of a parameter that only this page has. */
export function chosen({ more }: View, name: string): string | undefined {
  return more.find(([parameter]) => parameter === name)?.[1];
}

type Asked = Partial<Record<"period" | "from" | "to" | "project", string | undefined>> & {
  readonly compare: Comparison;
};

const DEFAULT_PERIOD = `${DAYS_DEFAULT}d`;

/** Dates win over the name of a period: the form to choose dates is on the page of a named period, too. */
function readPeriod({ from, to, period: name = DEFAULT_PERIOD }: Asked, today: Day): Period {
  if ((from ?? to) === undefined) return namedPeriod(name, today);
  if (from === undefined || to === undefined) throw new InvalidQuestion("expected both from and to");
  for (const [field, day] of Object.entries({ from, to }))
    if (!isDay(day)) throw new InvalidQuestion(`${field}: expected a day that exists, as YYYY-MM-DD`);
  const error = periodError({ start: from, end: to }, today, { from: "from", to: "to" });
  if (error !== undefined) throw new InvalidQuestion(error);
  return { start: from, end: to, name: undefined };
}

/** Of this month the whole days; on its first day that day alone, of which the numbers are not complete. */
function namedPeriod(name: string, today: Day): Period {
  const monthStart = `${today.slice(0, 7)}-01`;
  const yesterday = addDays(today, -1);
  if (name === "this-month") return { start: monthStart, end: yesterday < monthStart ? today : yesterday, name };
  if (name === "last-month") {
    const end = addDays(monthStart, -1);
    return { start: `${end.slice(0, 7)}-01`, end, name };
  }
  return { start: addDays(today, -Number.parseInt(name, 10)), end: yesterday, name };
}

/** The view with its days as dates, so that it is of the same days tomorrow. */
export function fixedView(view: View): View {
  return { ...view, period: { ...view.period, name: undefined } };
}

/** The parameters of the view with these changes, in a fixed order. What is as by default is left out. */
export function viewParameters(view: View, changes: Partial<View> = {}): readonly Parameter[] {
  const { period, compare, project, more } = { ...view, ...changes };
  const days: Parameter[] =
    period.name === undefined
      ? [
          ["from", period.start],
          ["to", period.end],
        ]
      : [["period", period.name]];
  return [
    ...(period.name === DEFAULT_PERIOD ? [] : days),
    ...(compare === "before" ? [] : [["compare", compare] as const]),
    ...(project === undefined ? [] : [["project", project] as const]),
    ...more,
  ];
}

/** "" or "?period=7d&project=production": what a link puts after the path of a page. */
export function viewQuery(view: View, changes: Partial<View> = {}): string {
  const query = new URLSearchParams(Object.fromEntries(viewParameters(view, changes))).toString();
  return query === "" ? "" : `?${query}`;
}

export function comparedWindow({ period: { start, end }, compare }: Pick<View, "period" | "compare">) {
  return comparedPeriod({ start, end }, compare);
}
