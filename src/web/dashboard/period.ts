// The days that a request asks for, and the form to choose others. Pure.

import { type Html, html } from "../../report/html.ts";
import { DAYS_DEFAULT, DAYS_MAX, periodError } from "../../report/report-data.ts";
import { addDays, type Day, dayCount, isDay, type Window } from "../../usage/days.ts";

export type Period = Window & {
  /** True for the newest days, which change every day; false if the request named the dates. */
  readonly live: boolean;
};

const QUERY_PARAMETERS = ["days", "from", "to"];

/** The period, or what is wrong with the query. An empty field of the form counts as left out. */
export function periodOf(query: URLSearchParams, today: Day): Period | { readonly error: string } {
  const given = [...query].filter(([, value]) => value !== "");
  const names = given.map(([name]) => name);
  const unknown = names.find((name) => !QUERY_PARAMETERS.includes(name));
  if (unknown !== undefined)
    return { error: `unknown parameter ${JSON.stringify(unknown)}; there are days, from and to` };
  if (new Set(names).size < names.length) return { error: "expected each parameter once" };
  const { days, from, to } = Object.fromEntries(given);
  if (from === undefined && to === undefined) return lastDays(days ?? String(DAYS_DEFAULT), today);
  if (days !== undefined) return { error: "expected days, or from and to; not both" };
  return betweenDays(from, to, today);
}

/** This many complete days; yesterday is the newest. */
function lastDays(days: string, today: Day): Period | { readonly error: string } {
  const count = /^\d{1,4}$/.test(days) ? Number(days) : 0;
  if (count < 1 || count > DAYS_MAX) return { error: `days: expected a whole number from 1 to ${DAYS_MAX}` };
  return { start: addDays(today, -count), end: addDays(today, -1), live: true };
}

function betweenDays(from: Day | undefined, to: Day | undefined, today: Day): Period | { readonly error: string } {
  if (from === undefined || to === undefined) return { error: "expected both from and to" };
  for (const [name, day] of Object.entries({ from, to })) {
    if (!isDay(day)) return { error: `${name}: expected a day that exists, as YYYY-MM-DD` };
  }
  const window = { start: from, end: to };
  const error = periodError(window, today, { from: "from", to: "to" });
  return error === undefined ? { ...window, live: false } : { error };
}

/** The query names the dates, so that its link still shows the same days tomorrow. */
export function queryOf({ start, end }: Window): string {
  return `?from=${start}&to=${end}`;
}

// Links and a form that needs no script. They are relative, because a proxy may serve the page under another path.

const DAY_CHOICES = [7, DAYS_DEFAULT, 90, DAYS_MAX - 1];

/** `period`: the days that the page shows; undefined if it shows none. */
export function periodForm(period: Period | undefined): Html {
  const shownDays = period?.live ? dayCount(period) : undefined;
  const links = DAY_CHOICES.map((days) => {
    const current = days === shownDays ? html` aria-current="page"` : undefined;
    return html`<li><a href="${days === DAYS_DEFAULT ? "./" : `./?days=${days}`}"${current}>${days} days</a></li>`;
  });
  const file = period && html`<li><a href="report.html${queryOf(period)}">as a file to send on</a></li>`;
  return html`<ul class="choices">${links}${file}</ul>
<form action="./" method="get">
<label>From <input type="date" name="from" required value="${period?.start}"></label>
<label>to <input type="date" name="to" required value="${period?.end}"></label>
<button>Show these days</button>
</form>
`;
}
