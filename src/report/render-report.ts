// The report: one HTML file that can be sent on. The same data makes the same bytes.

import { dayCount } from "../usage/day.ts";
import { instantText, windowText } from "./days.ts";
import { counted } from "./figures.ts";
import { html } from "./html.ts";
import { page } from "./page.ts";
import type { ReportData } from "./report-data.ts";
import { usageSections } from "./sections.ts";
import { trustNotice } from "./trust.ts";

export function renderReport(data: ReportData): string {
  const { period, madeAt } = data;
  return page({
    title: "Usage report",
    subtitle: `${windowText(period)} (${counted(dayCount(period), "day")})`,
    lead: trustNotice(data),
    sections: usageSections(data),
    footer: html`<p>Made ${instantText(madeAt)} by usage-export from its own database: what the service had answered until then. Days are UTC calendar days. Each grouping is the same usage counted again: figures of different groupings, and of different filters, are never to be added up.</p>`,
  });
}
