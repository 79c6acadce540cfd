// The report: one HTML file that can be sent on. The same data makes the same bytes. The pages of the dashboard are made of the same sections.

import { dayCount } from "../usage/days.ts";
import { breakdownSection } from "./breakdown-section.ts";
import { budgetSection } from "./budget-section.ts";
import { changeSection } from "./change-section.ts";
import { costSection } from "./cost-section.ts";
import { coverageSection } from "./coverage-section.ts";
import { counted, instantText, windowText } from "./format.ts";
import { html } from "./html.ts";
import { ADDING_UP_WARNING, htmlDocument, type Section, sectionLinks } from "./page.ts";
import { rankingSection } from "./ranking-section.ts";
import type { ReportData } from "./report-data.ts";
import { restatementSection } from "./restatement-section.ts";
import { summarySection, trustNotice } from "./summary.ts";

export function renderReport(data: ReportData): string {
  const { period, madeAt } = data;
  const days = `${windowText(period)} (${counted(dayCount(period), "day")})`;
  const sections = [...usageSections(data), ...[budgetSection(data.budgets) ?? []].flat()];
  return htmlDocument({
    title: `Usage report, ${days}`,
    header: html`<h1>Usage report</h1>
<p class="subtitle">${days}</p>
${trustNotice(data)}
${sections.length > 1 ? sectionLinks(sections) : undefined}`,
    sections,
    footer: html`<p>Made ${instantText(madeAt)} by usage-export from its own database: what the service had answered until then. ${ADDING_UP_WARNING}</p>`,
  });
}

/** Without any series there is only the coverage section, which says so. */
function usageSections(data: ReportData): readonly Section[] {
  if (data.coverage.series.length === 0) return [coverageSection(data)];
  return [
    summarySection(data),
    ...[changeSection(data) ?? [], costSection(data) ?? []].flat(),
    ...data.breakdowns.map((breakdown) => breakdownSection(breakdown)),
    ...data.rankings.map((ranking) => rankingSection(ranking)),
    coverageSection(data),
    restatementSection(data),
  ];
}
