// The sections of each page of the dashboard. The first request for a page loads this module, because the library for charts is large.

import type { Change } from "../../facts/changes.ts";
import type { Coverage } from "../../facts/coverage.ts";
import type { Overview } from "../../facts/overview.ts";
import { InvalidQuestion } from "../../facts/question.ts";
import type { Restatements } from "../../facts/restatements.ts";
import type { KeysData, RunDetails, RunList } from "../../health/operations.ts";
import type { HealthState } from "../../health/state.ts";
import { budgetSection } from "../../show/budget-section.ts";
import { changeHtml } from "../../show/change-section.ts";
import { coverageSection } from "../../show/coverage-section.ts";
import { type Html, html } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import { restatementSection } from "../../show/restatement-section.ts";
import type { BudgetUse } from "../../usage/budgets.ts";
import type { Page } from "../page.ts";
import { anomaliesSection } from "./anomalies-section.ts";
import { type FrameContent, framelessPage, type PageName, pageHref } from "./frame.ts";
import { jobsSections } from "./jobs-sections.ts";
import { keysSections } from "./keys-sections.ts";
import { overviewSections } from "./overview-sections.ts";
import { differencesSection, finalitySection, gapsSection, stretchHrefs } from "./quality-sections.ts";
import { runSections } from "./run-sections.ts";
import type { View } from "./view.ts";

/** What each page reads besides the health state. */
export type PageData = {
  readonly overview: Overview;
  /** Of the usage; then what it cost. Empty if the days are compared with none. */
  readonly cost: readonly Change[];
  readonly quality: { readonly coverage: Coverage; readonly restatements: Restatements };
  readonly jobs: RunList;
  readonly run: RunDetails | undefined;
  readonly keys: KeysData;
};

export type PageContent = Pick<FrameContent, "sections" | "title" | "notice" | "controls">;

type Render<P extends keyof PageData> = (data: PageData[P], view: View, health: HealthState) => PageContent;

export const PAGE_CONTENT: { readonly [P in keyof PageData]: Render<P> } = {
  overview(data, view, health) {
    const isNew = data.total.projectCount === 0 && data.total.available.groupings.length === 0;
    if (isNew) return { notice: nothingYet(health), sections: [] };
    return { sections: overviewSections(data, budgetsOf(health.budgets, view.project, health), { view }) };
  },
  cost: (changes, _, health) => ({
    sections: [
      costSection(changes.filter(({ currency }) => currency !== null)),
      budgetSection(health.budgets) ?? noBudgets(),
      ...changes
        .filter(({ currency, amount, amountBefore }) => currency === null && (amount ?? amountBefore) !== null)
        .map((change) => ({ id: "what-changed", title: "What changed", body: changeHtml(change) })),
      anomaliesSection(health),
    ].flat(),
  }),
  quality: ({ coverage, restatements }, view, health) => ({
    sections: [
      gapsSection(health),
      coverageSection(coverage, stretchHrefs(view, health)),
      finalitySection(coverage),
      differencesSection(coverage),
      restatementSection(restatements),
    ],
  }),
  jobs: (runs, view, health) => ({ sections: jobsSections(health, runs, view) }),
  run(details, view) {
    const { id } = view;
    if (!details)
      throw new InvalidQuestion(
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

/** Those of the project alone: others are of more than it. */
function budgetsOf(budgets: readonly BudgetUse[], project: string | undefined, health: HealthState) {
  if (project === undefined) return budgets;
  const ids = health.projects
    .filter((one) => one.projectId === project || one.project === project)
    .map(({ projectId }) => projectId);
  return budgets.filter(({ projectIds }) => projectIds.every((id) => ids.includes(id)));
}

function costSection(changes: readonly Change[]): Section {
  const body =
    changes.length > 0
      ? html`${changes.map(changeHtml)}`
      : html`<p class="empty">No usage of these days has a price, and no billing of them was read. Set <code>prices</code> in the configuration to see what usage costs.</p>`;
  return { id: "what-it-cost", title: "What it cost", body };
}

function noBudgets(): Section {
  return {
    id: "budgets",
    title: "Budgets",
    body: html`<p class="empty">No budget is configured. Set <code>budgets</code> in the configuration to be told when usage or cost reaches a limit.</p>`,
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
