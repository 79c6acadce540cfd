// The report: one HTML file that can be sent on. The same data makes the same bytes. The dashboard shows the same sections.

import { dayCount } from "../usage/days.ts";
import { breakdownSection } from "./breakdown-section.ts";
import { budgetSection } from "./budget-section.ts";
import { changeSection } from "./change-section.ts";
import { costSection } from "./cost-section.ts";
import { coverageSection } from "./coverage-section.ts";
import { counted, instantText, windowText } from "./format.ts";
import { html } from "./html.ts";
import { ADDING_UP_WARNING, htmlDocument, type Section } from "./page.ts";
import { rankingSection } from "./ranking-section.ts";
import type { ReportData } from "./report-data.ts";
import { restatementSection } from "./restatement-section.ts";
import { headlineFigures, trustNotice } from "./summary.ts";

export function renderReport(data: ReportData): string {
  const { period, madeAt } = data;
  return htmlDocument({
    title: "Usage report",
    subtitle: `${windowText(period)} (${counted(dayCount(period), "day")})`,
    lead: trustNotice(data),
    sections: [...usageSections(data), ...[budgetSection(data.budgets) ?? []].flat()],
    footer: html`<p>Made ${instantText(madeAt)} by usage-export from its own database: what the service had answered until then. ${ADDING_UP_WARNING}</p>`,
  });
}

/**
 * The sections that the report and the dashboard share; `trustNotice` belongs above them. Without any series there is only the
 * coverage section, which says so.
 */
export function usageSections(data: ReportData): readonly Section[] {
  if (data.coverage.series.length === 0) return [coverageSection(data)];
  return [
    { id: "summary", title: "In short", body: headlineFigures(data) },
    ...[changeSection(data) ?? [], costSection(data) ?? []].flat(),
    ...data.breakdowns.map(breakdownSection),
    ...data.rankings.map(rankingSection),
    coverageSection(data),
    restatementSection(data),
  ];
}
