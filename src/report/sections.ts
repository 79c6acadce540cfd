// The sections about usage that a report and the dashboard share, in the order they are read.

import { breakdownSection } from "./breakdown-section.ts";
import { coverageSection } from "./coverage-section.ts";
import { headlineFigures } from "./headline.ts";
import type { Section } from "./page.ts";
import { rankingSection } from "./ranking-section.ts";
import type { ReportData } from "./report-data.ts";
import { restatementSection } from "./restatement-section.ts";

/** For `page`; `trustNotice` belongs above them. Without any series only the coverage, which says so. */
export function usageSections(data: ReportData): readonly Section[] {
  if (data.coverage.series.length === 0) return [coverageSection(data)];
  return [
    { id: "summary", title: "In short", body: headlineFigures(data) },
    ...data.breakdowns.map(breakdownSection),
    ...data.rankings.map(rankingSection),
    coverageSection(data),
    restatementSection(data),
  ];
}
