// Lets a visitor choose the days, by links and by a form that needs no script. Relative, for whoever comes through a proxy
// that serves it under a path of its own. Pure.

import { type Html, html } from "../../report/html.ts";
import { DAYS_DEFAULT, DAYS_MAX } from "../../report/period-limits.ts";
import { dayCount } from "../../usage/day.ts";
import { type Period, queryOf } from "./period.ts";

const CHOICES = [7, DAYS_DEFAULT, 90, DAYS_MAX - 1];

/** `period` is what is shown now. */
export function periodForm(period: Period | undefined): Html {
  const shownDays = period?.live ? dayCount(period) : undefined;
  const links = CHOICES.map((days) => {
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
