// What a URL asks for: a page, its days and project, and a question for the page Usage & cost or the read API. The URL has the whole state
// of a page, so bookmarks and the back button work. Pure.

import { z } from "zod";
import { ASKED_METRICS, InvalidQuestion, type Question, SORTS, SPLITS } from "../facts/question.ts";
import { GRAINS } from "../show/answer-chart.ts";
import { addDays, comparedPeriod, DAYS_DEFAULT, DAYS_MAX, type Day, monthBefore, periodError } from "../usage/days.ts";

/** The pages of the dashboard. `web/dashboard/pages.ts` says what each one reads. */
export const PAGES = {
  overview: { path: "/", title: "Overview" },
  usage: { path: "/usage", title: "Usage & cost" },
  health: { path: "/data-health", title: "Data health" },
  run: { path: "/run", title: "Run" },
} as const satisfies Readonly<Record<string, { path: string; title: string }>>;

export type PageName = keyof typeof PAGES;

/** The periods that a page offers as links. The keys are the values of the parameter `period`. */
export const PERIOD_TITLES = {
  "7d": "7 days",
  [`${DAYS_DEFAULT}d`]: `${DAYS_DEFAULT} days`,
  "90d": "90 days",
  "this-month": "This month",
  "last-month": "Last month",
};

const LISTED_DEFAULT = 20;
const LIMIT_MAX = 1_000;
/** No name in the service's answers or in the configuration is longer. */
const TEXT_LENGTH_MAX = 2_000;

const aText = z.string().max(TEXT_LENGTH_MAX);
const aDay = z.iso.date("expected a day that exists, as YYYY-MM-DD");

const VIEW_PARAMETERS = {
  period: z
    .enum(Object.keys(PERIOD_TITLES))
    .optional()
    .describe("Complete days until yesterday, or a month. If left out: 28d, unless from and to are given"),
  from: aDay.optional().describe(`The first day, in UTC, as YYYY-MM-DD. A period has at most ${DAYS_MAX} days`),
  to: aDay.optional().describe("The last day, in UTC"),
  project: aText.optional().describe("The name or the identifier of a project. If left out, all projects are added up"),
};

/** What the page Usage & cost and the read API can be asked. */
export const QuestionParameters = z.strictObject({
  ...VIEW_PARAMETERS,
  compare: z
    .enum(["before", "none"])
    .default("before")
    .describe("before: for a whole month the previous one, else as many days, but whole weeks earlier. none: nothing"),
  metric: z
    .enum(ASKED_METRICS)
    .default("hours")
    .describe("estimated_cost: at configured prices, grouping model, project or none only; billed_cost: in dollars"),
  currency: aText.optional().describe("Only for estimated_cost. If left out: the first currency by name"),
  grouping: z
    .enum(SPLITS)
    .optional()
    .describe(
      "The dimension whose values are the groups, or project; none is the total; line_item is for billed_cost only. If left out: model, or none for billed_cost, which is not known by model",
    ),
  filter: aText.optional().describe("The name of a configured filter. If left out: all usage"),
  group: aText.optional().describe("Only the group with this value"),
  "no-value": z.literal("yes").optional().describe("Only the group of the usage that has no value"),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(LIMIT_MAX)
    .default(LISTED_DEFAULT)
    .describe(`How many groups are listed, the first by sort; at most ${LIMIT_MAX}`),
  sort: z.enum(SORTS).default("amount").describe("Lists the groups that are the largest, or that changed the most"),
});

/** `by` means what the overview's chart is split by; on the page Usage & cost, the time that a bar of the chart stands for. */
const PARAMETERS = {
  overview: z.strictObject({ ...VIEW_PARAMETERS, by: z.enum(SPLITS).optional() }),
  usage: z.strictObject({ ...QuestionParameters.shape, by: z.enum(GRAINS).default("day") }),
  health: z.strictObject(VIEW_PARAMETERS),
  run: z.strictObject({ ...VIEW_PARAMETERS, id: aText.optional() }),
  report: z.strictObject(VIEW_PARAMETERS),
};

/** Empty parameters count as left out, because a form sends its empty fields. Throws InvalidQuestion about the first wrong parameter. */
export function parseQuery<Schema extends z.ZodType>(schema: Schema, query: URLSearchParams): z.output<Schema> {
  const parsed = schema.safeParse(Object.fromEntries([...query].filter(([, value]) => value !== "")));
  if (parsed.success) return parsed.data;
  throw new InvalidQuestion(problemOf(parsed.error));
}

export function problemOf({ issues: [issue] }: Pick<z.ZodError, "issues">): string {
  return [...(issue?.path ?? []), issue?.message].join(": ");
}

export function questionOf(asked: z.output<typeof QuestionParameters>, today: Day): Question {
  const { metric, currency, filter, group, limit, sort, project, compare, "no-value": noValue } = asked;
  const grouping = asked.grouping ?? (metric === "billed_cost" ? "none" : "model");
  if (noValue !== undefined && group !== undefined)
    throw new InvalidQuestion("group: expected group or no-value, not both");
  if (grouping === "none" && (noValue ?? group) !== undefined)
    throw new InvalidQuestion("group: expected no group, as the grouping none has only the total");
  const { start, end } = readPeriod(asked, today);
  const value = noValue === undefined ? group : null;
  const chosen = { metric, currency, grouping, filter, limit, sort };
  return {
    ...chosen,
    period: { start, end },
    before: compare === "none" ? undefined : comparedPeriod({ start, end }),
    projects: project === undefined ? undefined : [project],
    group: value === undefined ? undefined : { value },
  };
}

/** `name` is the value of the parameter `period` for these days; undefined if only their dates name them. */
type Period = Question["period"] & { readonly name: string | undefined };

/** What the URL of a page asks for. A link to another page keeps the days and the project. */
export type View = {
  readonly period: Period;
  /** The name or identifier of a project, to show its usage alone. */
  readonly project: string | undefined;
  /** The parameters that only the page itself has. Links to other pages leave them out. */
  readonly pageParameters: Readonly<Record<string, string | undefined>>;
};

export function viewOf(page: keyof typeof PARAMETERS, query: URLSearchParams, today: Day): View {
  const asked: Asked = parseQuery(PARAMETERS[page], query);
  const own = [...query].filter(([name, value]) => value !== "" && !Object.hasOwn(VIEW_PARAMETERS, name));
  return { period: readPeriod(asked, today), project: asked.project, pageParameters: Object.fromEntries(own) };
}

export function usageQuestion(view: View, today: Day): Question {
  const { by: _, ...asked } = parseQuery(PARAMETERS.usage, new URLSearchParams(viewQuery(view)));
  return questionOf(asked, today);
}

type Asked = Partial<Record<"period" | "from" | "to" | "project", string | undefined>>;

const DEFAULT_PERIOD = `${DAYS_DEFAULT}d`;

/** A form sends the period's name together with its dates: the name counts only if no date was changed. Throws InvalidQuestion. */
export function readPeriod({ from, to, period: name = DEFAULT_PERIOD }: Asked, today: Day): Period {
  const named = periodOfName(name, today);
  if ((from ?? to) === undefined || (from === named.start && to === named.end)) return named;
  if (from === undefined || to === undefined) throw new InvalidQuestion("expected both from and to");
  const error = periodError({ start: from, end: to }, today);
  if (error !== undefined) throw new InvalidQuestion(error);
  return { start: from, end: to, name: undefined };
}

/** "this-month" ends yesterday. On the first of a month it is that one day, whose numbers are not complete yet. */
function periodOfName(name: string, today: Day): Period {
  const monthStart = `${today.slice(0, 7)}-01`;
  const yesterday = addDays(today, -1);
  if (name === "this-month") return { start: monthStart, end: yesterday < monthStart ? today : yesterday, name };
  if (name === "last-month") return { ...monthBefore(monthStart), name };
  return { start: addDays(today, -Number.parseInt(name, 10)), end: yesterday, name };
}

/** Names the days by their dates, so that a link shows the same days tomorrow. */
export function fixedView(view: View): View {
  return { ...view, period: { ...view.period, name: undefined } };
}

/** The query of a link: "?period=7d&project=production". The default period is left out, so the query may be "". */
export function viewQuery(view: View, changes: Partial<View> = {}): string {
  const { period, project, pageParameters } = { ...view, ...changes };
  const days = period.name === undefined ? { from: period.start, to: period.end } : { period: period.name };
  const query = new URLSearchParams();
  const all = { ...(period.name !== DEFAULT_PERIOD && days), project, ...pageParameters };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) query.set(name, value);
  return query.size === 0 ? "" : `?${query}`;
}

/** The link keeps the days and the project of the view, and replaces the view's page parameters by `pageParameters`. */
export function pageHref(page: PageName, view?: View, pageParameters: View["pageParameters"] = {}): string {
  return `.${PAGES[page].path}${view ? viewQuery(view, { pageParameters }) : ""}`;
}
