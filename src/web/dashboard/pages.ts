// The sections of each page of the dashboard. The first request for a page loads this module, because the library for charts is large.

import type { KeysData, RunDetails, RunList } from "../../health/operations.ts";
import type { HealthState } from "../../health/state.ts";
import { budgetSection } from "../../report/budget-section.ts";
import { changeSection } from "../../report/change-section.ts";
import { costSection } from "../../report/cost-section.ts";
import { coverageSection } from "../../report/coverage-section.ts";
import { type Html, html } from "../../report/html.ts";
import { contentSecurityPolicy, type Section } from "../../report/page.ts";
import { renderReport } from "../../report/report.ts";
import type { ChangeData, QualityData, ReportData, TrustData, UsageData } from "../../report/report-data.ts";
import { restatementSection } from "../../report/restatement-section.ts";
import { trustNotice } from "../../report/summary.ts";
import type { Page } from "../page.ts";
import { anomaliesSection } from "./anomalies-section.ts";
import { type FrameContent, framelessPage, type PageName, pageHref } from "./frame.ts";
import { jobsSections } from "./jobs-sections.ts";
import { keysSections } from "./keys-sections.ts";
import { overviewSections } from "./overview-sections.ts";
import { differencesSection, finalitySection, gapsSection, stretchHrefs } from "./quality-sections.ts";
import { runSections } from "./run-sections.ts";
import { InvalidView, type View, viewQuery } from "./view.ts";

/** What each page reads besides the health state. */
export type PageData = {
  readonly overview: UsageData;
  readonly cost: ChangeData;
  readonly quality: QualityData & TrustData;
  readonly jobs: RunList;
  readonly run: RunDetails | undefined;
  readonly keys: KeysData;
};

export type PageContent = Pick<FrameContent, "sections" | "title" | "notice" | "controls">;

type Render<P extends keyof PageData> = (data: PageData[P], view: View, health: HealthState) => PageContent;

export const PAGE_CONTENT: { readonly [P in keyof PageData]: Render<P> } = {
  overview(data, view, health) {
    if (data.coverage.seriesCount === 0) return { notice: nothingYet(health), sections: [] };
    const coverageHref = `${pageHref("overview", "quality")}${viewQuery(view)}`;
    return { notice: trustNotice(data, coverageHref), sections: overviewSections(data, view, health) };
  },
  cost: (data, _, health) => ({
    sections: [
      costSection(data) ?? noPrices(),
      budgetSection(health.budgets) ?? noBudgets(),
      changeSection(data) ?? [],
      anomaliesSection(health),
    ].flat(),
  }),
  quality: (data, view, health) => ({
    sections: [
      gapsSection(health),
      coverageSection(data, stretchHrefs(view, health)),
      finalitySection(data),
      differencesSection(data),
      restatementSection(data),
    ],
  }),
  jobs: (runs, view, health) => ({ sections: jobsSections(health, runs, view) }),
  run(details, view) {
    const { id } = view;
    if (!details)
      throw new InvalidView(
        `id: there is no run ${id ?? "without an id"}; runs are deleted after the days of history.keepDays`,
      );
    return { title: `Run of ${details.run.job}`, sections: runSections(details, view) };
  },
  keys: (data, view) => ({ sections: keysSections(data, view) }),
};

function nothingYet({ jobs }: HealthState): Html {
  const next =
    jobs.length === 0
      ? html`No job is configured: add an export to <code>jobs.config.json</code>.`
      : html`No job has read any usage. To read it now, run <code>usage-export export</code>; <code>usage-export start</code> does it on schedule.`;
  return html`<div class="notice none"><strong>There are no numbers yet.</strong> ${next}</div>
`;
}

function noPrices(): Section {
  return {
    id: "what-it-cost",
    title: "What it cost",
    body: html`<p class="empty">No usage of these days has a price. Set <code>prices</code> in the configuration to see what usage costs.</p>`,
  };
}

function noBudgets(): Section {
  return {
    id: "budgets",
    title: "Budgets",
    body: html`<p class="empty">No budget is configured. Set <code>budgets</code> in the configuration to be told when usage or cost reaches a limit.</p>`,
  };
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

const RETRY_SECONDS = 10;

export function unavailablePage(page: PageName, reasons: readonly string[]): Page {
  const root = pageHref(page, "overview");
  const lead = html`<div class="notice bad"><strong>The state of the jobs can't be read now.</strong>
<ul>${reasons.map((reason) => html`<li><bdi>${reason}</bdi></li>`)}</ul></div>
<p>This page is requested again every ${RETRY_SECONDS} seconds. <a href="${root}readyz">/readyz</a> and <a href="${root}metrics">/metrics</a> still answer.</p>`;
  const seconds = String(RETRY_SECONDS);
  return framelessPage(503, "The dashboard is not available", lead, { refresh: seconds, "retry-after": seconds });
}

export function invalidPage(page: PageName, error: string): Page {
  const lead = html`<div class="notice bad"><strong>This can't be shown.</strong> <bdi>${error}</bdi></div>
<p><a href="${pageHref(page, page === "run" ? "jobs" : page)}">Show the newest days</a></p>`;
  return framelessPage(400, "Invalid address", lead);
}
