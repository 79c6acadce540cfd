// What a page of the dashboard shows, as its URL says it: the period, the period to compare with, and what the usage is narrowed to.
// Every state of a page is its URL, so bookmarks and the back button work. Pure.

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
} from "../../usage/days.ts";

type Period = Window & {
  /** True for a period that changes with the day; false if the request named the dates. */
  readonly live: boolean;
  /** The value of `period` or, as "days=45", of `days` that asks for it; undefined if the request named the dates. */
  readonly name: string | undefined;
};

/** What the pages share: a link from one to another keeps it. */
export type View = {
  readonly period: Period;
  readonly compare: Comparison;
  /** The name of a project, to show its usage alone. */
  readonly project: string | undefined;
  /** Of the run, on a run's page. */
  readonly id: string | undefined;
  /** The parameters that only the page itself has; links to other pages leave them out. */
  readonly more?: readonly Parameter[];
};

const PARAMETERS: readonly string[] = ["period", "days", "from", "to", "compare", "project", "id"];
const DEFAULT_PERIOD = `${DAYS_DEFAULT}d`;
const THIS_MONTH = "this-month";

/** The periods to choose by one click, by the value of the parameter `period`. */
export const PERIOD_TITLES = {
  "7d": "7 days",
  "28d": "28 days",
  "90d": "90 days",
  [THIS_MONTH]: "This month",
  "last-month": "Last month",
} as const;

/** Or what is wrong with the query. An empty field of a form counts as left out. `own` are the parameters that only the page itself has. */
export function readView(
  query: URLSearchParams,
  today: Day,
  own: readonly string[] = [],
): View | { readonly error: string } {
  const given = [...query].filter(([, value]) => value !== "");
  const names = given.map(([name]) => name);
  const known = [...PARAMETERS, ...own];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    return { error: `unknown parameter ${JSON.stringify(unknown)}; there are ${known.join(", ")}` };
  if (new Set(names).size < names.length) return { error: "expected each parameter once" };
  const values = new Map(given);
  const period = readPeriod(values, today);
  if ("error" in period) return period;
  const compare = COMPARISONS.find((one) => one === (values.get("compare") ?? "before"));
  if (!compare) return { error: `compare: expected one of ${COMPARISONS.join(", ")}` };
  const more = given.filter(([name]) => own.includes(name));
  return { period, compare, project: values.get("project"), id: values.get("id"), ...(more.length > 0 && { more }) };
}

/** Dates win over the name of a period: the form to choose dates is on the page of a named period, too. */
function readPeriod(values: ReadonlyMap<string, string>, today: Day): Period | { readonly error: string } {
  const [from, to, days, name] = ["from", "to", "days", "period"].map((parameter) => values.get(parameter));
  if (from !== undefined || to !== undefined) return betweenDays(from, to, today);
  if (days !== undefined && name !== undefined) return { error: "expected days or period, not both" };
  return days === undefined ? namedPeriod(name ?? DEFAULT_PERIOD, today) : lastDays(days, today);
}

/** The whole days of the month; on its first day that day alone, of which the numbers are not complete. */
function namedPeriod(name: string, today: Day): Period | { readonly error: string } {
  const monthStart = `${today.slice(0, 7)}-01`;
  const yesterday = addDays(today, -1);
  if (name === THIS_MONTH) {
    return { start: monthStart, end: yesterday < monthStart ? today : yesterday, live: true, name };
  }
  if (name === "last-month") {
    const end = addDays(monthStart, -1);
    return { start: `${end.slice(0, 7)}-01`, end, live: true, name };
  }
  if (name in PERIOD_TITLES) return lastDays(name.slice(0, -1), today);
  return { error: `period: expected one of ${Object.keys(PERIOD_TITLES).join(", ")}` };
}

/** This many complete days; yesterday is the newest. */
function lastDays(days: string, today: Day): Period | { readonly error: string } {
  const count = /^\d{1,4}$/.test(days) ? Number(days) : 0;
  if (count < 1 || count > DAYS_MAX) return { error: `days: expected a whole number from 1 to ${DAYS_MAX}` };
  const name = `${count}d` in PERIOD_TITLES ? `${count}d` : `days=${count}`;
  return { start: addDays(today, -count), end: addDays(today, -1), live: true, name };
}

function betweenDays(from: Day | undefined, to: Day | undefined, today: Day): Period | { readonly error: string } {
  if (from === undefined || to === undefined) return { error: "expected both from and to" };
  for (const [name, day] of Object.entries({ from, to })) {
    if (!isDay(day)) return { error: `${name}: expected a day that exists, as YYYY-MM-DD` };
  }
  const window = { start: from, end: to };
  const error = periodError(window, today, { from: "from", to: "to" });
  return error === undefined ? { ...window, live: false, name: undefined } : { error };
}

/** The view with its days as dates, so that it is of the same days tomorrow. */
export function fixedView(view: View): View {
  return { ...view, period: { ...view.period, live: false, name: undefined } };
}

type Parameter = readonly [name: string, value: string];

/** The parameters of the view with these changes, in a fixed order. What is as by default is left out. */
export function viewParameters(view: View, changes: Partial<View> = {}): readonly Parameter[] {
  const { period, compare, project, id, more = [] } = { ...view, ...changes };
  return [
    ...periodParameters(period),
    ...(compare === "before" ? [] : [["compare", compare] as const]),
    ...(project === undefined ? [] : [["project", project] as const]),
    ...(id === undefined ? [] : [["id", id] as const]),
    ...more,
  ];
}

function periodParameters({ start, end, name }: Period): readonly Parameter[] {
  if (name === undefined)
    return [
      ["from", start],
      ["to", end],
    ];
  if (name === DEFAULT_PERIOD) return [];
  const days = /^days=(\d+)$/.exec(name)?.[1];
  return [days === undefined ? ["period", name] : ["days", days]];
}

/** "" or "?period=7d&project=production": what a link puts after the path of a page. */
export function viewQuery(view: View, changes: Partial<View> = {}): string {
  const query = new URLSearchParams(Object.fromEntries(viewParameters(view, changes))).toString();
  return query === "" ? "" : `?${query}`;
}

export function comparedWindow({
  period: { start, end },
  compare,
}: Pick<View, "period" | "compare">): Window | undefined {
  return comparedPeriod({ start, end }, compare);
}
