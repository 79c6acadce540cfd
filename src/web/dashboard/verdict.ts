// The verdict at the top of each page: whether a person is needed, and for what. Pure.

import type { Condition } from "../../facts/conditions.ts";
import type { HealthState } from "../../facts/health.ts";
import { counted, dayLabel } from "../../show/format.ts";
import { type Html, html } from "../../show/html.ts";
import type { Readiness } from "../page.ts";

export type DashboardProblem = { readonly text: string; readonly section?: Condition["section"] };

/** Makes the link to a section of some page. */
export type SectionHref = (section: Condition["section"]) => string;

/** First why the worker that shows the page can't work, then the conditions for which `status` would end with 1. */
export function dashboardProblems(health: HealthState, readiness: Readiness): readonly DashboardProblem[] {
  return [
    ...readiness.reasons.map((reason) => ({ text: `this worker can't work now: ${reason}` })),
    ...health.conditions.filter(({ isWrong }) => isWrong),
  ];
}

/** "All data up to Nov 22 is in." */
function wellText({ projects }: HealthState): string {
  const days = projects.flatMap(({ series, freshThrough }) =>
    series > 0 && freshThrough !== null ? [freshThrough] : [],
  );
  const [oldest] = days.sort();
  return oldest === undefined ? "Nothing is due yet." : `All data up to ${dayLabel(oldest)} is in.`;
}

/** `problems` are the dashboardProblems; below them are the reminders. `isOpen`: what is to be looked at is listed at once, and not folded. */
export function verdictHtml(
  problems: readonly DashboardProblem[],
  health: HealthState,
  { href, isOpen }: { readonly href: SectionHref; readonly isOpen: boolean },
): Html {
  const list = (items: readonly DashboardProblem[]) =>
    items.map(({ text, section }) =>
      section === undefined ? html`<li>${text}</li>` : html`<li><a href="${href(section)}">${text}</a></li>`,
    );
  const notice = (kind: string, title: string, items: readonly DashboardProblem[], open: boolean) =>
    items.length === 0
      ? undefined
      : html`<details class="notice ${kind}"${open ? html` open` : undefined}><summary><strong>${title}</strong></summary>
<ul>${list(items)}</ul></details>
`;
  const reminders = health.conditions.filter(({ isWrong }) => !isWrong);
  return html`${
    problems.length === 0 && health.jobs.length === 0
      ? html`<div class="notice none"><strong>No job is configured.</strong> Nothing is due before an export is added to <code>jobs.config.json</code>; <code>usage-export start</code> then runs it on schedule.</div>
`
      : problems.length === 0
        ? html`<p class="well"><strong>${wellText(health)}</strong></p>
`
        : notice("bad", `${counted(problems.length, "thing")} to look at`, problems, isOpen)
  }${notice("warn", `${counted(reminders.length, "note")} on usage, budgets and keys`, reminders, false)}`;
}
