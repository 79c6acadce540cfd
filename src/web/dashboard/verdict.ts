// The verdict at the top of each page: whether a person is needed, and for what. Pure.

import type { Alert } from "../../health/alert.ts";
import { alertsOf } from "../../health/alerts.ts";
import type { HealthState } from "../../health/state.ts";
import { usageAlertsOf } from "../../health/usage-alerts.ts";
import { counted } from "../../show/format.ts";
import { type Html, html } from "../../show/html.ts";
import type { Readiness } from "../routes.ts";

export type DashboardAlert = { readonly text: string; readonly section?: Alert["section"] };

/** Makes the link to a section of some page. */
export type SectionHref = (section: Alert["section"]) => string;

/** First why the worker that shows the page can't work, then the alerts for which `status` would end with 1. */
export function dashboardAlerts(health: HealthState, readiness: Readiness): readonly DashboardAlert[] {
  return [
    ...readiness.reasons.map((reason) => ({ text: `this worker can't work now: ${reason}` })),
    ...alertsOf(health),
  ];
}

/**
 * `alerts` are the dashboardAlerts. Below them the alerts about the usage. `isOpen`: what is to be
 * looked at is listed at once, and not folded.
 */
export function verdictHtml(
  alerts: readonly DashboardAlert[],
  health: HealthState,
  { href, isOpen }: { readonly href: SectionHref; readonly isOpen: boolean },
): Html {
  const list = (items: readonly DashboardAlert[]) =>
    items.map(({ text, section }) =>
      section === undefined ? html`<li>${text}</li>` : html`<li><a href="${href(section)}">${text}</a></li>`,
    );
  const notice = (kind: string, title: string, items: readonly DashboardAlert[], open: boolean) =>
    items.length === 0
      ? undefined
      : html`<details class="notice ${kind}"${open ? html` open` : undefined}><summary><strong>${title}</strong></summary>
<ul>${list(items)}</ul></details>
`;
  const usage = usageAlertsOf(health);
  return html`${
    alerts.length === 0 && health.jobs.length === 0
      ? html`<div class="notice none"><strong>No job is configured.</strong> Nothing is due before an export is added to <code>jobs.config.json</code>; <code>usage-export start</code> then runs it on schedule.</div>
`
      : alerts.length === 0
        ? html`<div class="notice good"><strong>Nothing that is due is missing.</strong> ${counted(health.slices.complete, "slice")} complete; no job waits for a worker, and no key for a person.</div>
`
        : notice("bad", `${counted(alerts.length, "thing")} to look at`, alerts, isOpen)
  }${notice("warn", `About the usage: ${counted(usage.length, "thing")} to look at`, usage, isOpen)}`;
}
