// Renders the pages of the dashboard. The first request for a page loads this module, because the library for charts is large.

import type { ReadResult } from "../../async.ts";
import { errorText } from "../../errors.ts";
import type { Operations } from "../../health/state.ts";
import { breakdownSection } from "../../report/breakdown-section.ts";
import { budgetSection } from "../../report/budget-section.ts";
import { windowText } from "../../report/format.ts";
import { type Html, html } from "../../report/html.ts";
import {
  ADDING_UP_WARNING,
  contentSecurityPolicy,
  htmlDocument,
  type PageOptions,
  type Section,
} from "../../report/page.ts";
import { renderReport, usageSections } from "../../report/report.ts";
import type { Breakdown, ReportData } from "../../report/report-data.ts";
import { trustNotice } from "../../report/summary.ts";
import { scriptHead } from "../assets.ts";
import type { Page } from "../page.ts";
import type { Readiness } from "../routes.ts";
import { anomaliesSection } from "./anomalies-section.ts";
import { type Period, periodForm, queryOf } from "./period.ts";
import { dashboardAlerts, gapsSection, jobsSection, keysSection, runsSection, verdictHtml } from "./sections.ts";

export type DashboardContent = {
  readonly period: Period;
  readonly operations: Operations;
  readonly usage: ReadResult<UsageContent>;
  readonly readiness: Readiness;
};

/** The part of the report for the period. `trust` says whether its numbers are complete. */
export type UsageContent = { readonly trust: Html; readonly sections: readonly Section[] };

const NAME = "usage-export";
const RETRY_SECONDS = 10;

export function dashboardPage({ period, operations, usage, readiness }: DashboardContent): Page {
  const { health, runs, rotations } = operations;
  const alerts = dashboardAlerts(health, readiness);
  const readAt = health.readAt.toISOString().slice(0, 19).replace("T", " ");
  const refresh = period.live
    ? html`Kept up to date; <a href="./${queryOf(period)}">keep these days</a>.`
    : html`<a href="./">Show the newest days</a>, which are kept up to date.`;
  return htmlPage(
    200,
    {
      title: alerts.length === 0 ? "All is well" : "Not all is well",
      subtitle: `usage-export as of ${readAt} UTC`,
      lead: html`${verdictHtml(alerts, health)}<p class="renewal">${refresh}</p>`,
      sections: [
        jobsSection(health),
        runsSection(runs),
        gapsSection(health),
        keysSection(rotations),
        ...[budgetSection(health.budgets) ?? []].flat(),
        ...anomaliesSection(health),
        ...usageSectionsOf(period, usage),
      ],
      head: scriptHead("", period.live),
    },
    { asOf: [readAt] },
  );
}

export function usageContent(data: ReportData): UsageContent {
  return { trust: trustNotice(data), sections: usageSections(data) };
}

/** Draws a breakdown while the rest of the report is read. An error comes again when the page is made, where it is reported. */
export function drawAhead(breakdown: Breakdown): void {
  try {
    breakdownSection(breakdown);
  } catch {}
}

/** If the usage could not be read, the page shows the rest all the same. */
function usageSectionsOf(period: Period, usage: ReadResult<UsageContent>): readonly Section[] {
  const notice = usage.ok
    ? usage.value.trust
    : html`<div class="notice bad"><strong>The usage could not be read.</strong> <bdi>${errorText(usage.error)}</bdi>: choose fewer days, or try again.</div>`;
  const title = `Usage, ${windowText(period)}`;
  return [
    { id: "usage", title, body: html`${periodForm(period)}${notice}` },
    ...(usage.ok ? usage.value.sections : []),
  ];
}

/** The same file as the command `report` writes. */
export function reportFilePage(data: ReportData): Page {
  const { start, end } = data.period;
  return {
    status: 200,
    contentType: "text/html; charset=utf-8",
    body: renderReport(data),
    headers: {
      "content-security-policy": `${contentSecurityPolicy()}; frame-ancestors 'none'`,
      "content-disposition": `attachment; filename="usage-${start}-${end}.html"`,
    },
  };
}

export function unavailablePage(reasons: readonly string[]): Page {
  const lead = html`<div class="notice bad"><strong>The state of the jobs can't be read now.</strong>
<ul>${reasons.map((reason) => html`<li><bdi>${reason}</bdi></li>`)}</ul></div>
<p>This page is requested again every ${RETRY_SECONDS} seconds. <a href="readyz">/readyz</a> and <a href="metrics">/metrics</a> still answer.</p>`;
  const seconds = String(RETRY_SECONDS);
  const options = { title: "The dashboard is not available", subtitle: NAME, lead, sections: [] };
  return htmlPage(503, options, { headers: { refresh: seconds, "retry-after": seconds } });
}

export function invalidQueryPage(error: string): Page {
  const lead = html`<div class="notice bad"><strong>These days can't be shown.</strong> <bdi>${error}</bdi></div>
${periodForm(undefined)}`;
  return htmlPage(400, { title: "Invalid period", subtitle: NAME, lead, sections: [] }, {});
}

function htmlPage(
  status: number,
  options: Omit<PageOptions, "footer" | "served">,
  { asOf, headers }: Pick<Page, "asOf" | "headers">,
): Page {
  const footer = html`<p>Nothing can be changed here. ${ADDING_UP_WARNING}</p>`;
  return {
    status,
    contentType: "text/html; charset=utf-8",
    body: htmlDocument({ ...options, footer, served: true }),
    headers: { "content-security-policy": `${contentSecurityPolicy(true)}; frame-ancestors 'none'`, ...headers },
    ...(asOf && { asOf }),
  };
}
