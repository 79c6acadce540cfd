// What is missing, of all time, as a section of the dashboard. Pure.

import { seriesHtml } from "../../report/coverage-section.ts";
import { windowText } from "../../report/days.ts";
import { rounded } from "../../report/figures.ts";
import { type Html, html } from "../../report/html.ts";
import type { Section } from "../../report/page.ts";
import { table } from "../../report/table.ts";
import { type Gap, type GapGroup, groupGaps } from "../gap-groups.ts";
import { longText, stateHtml } from "./cells.ts";
import type { Operations } from "./operations.ts";

const GAPS_SHOWN_MAX = 50;
const SERIES_SHOWN_MAX = 100;

const COLUMNS = ["Days", "Status", "Series"].map((title) => ({ title }));

export function gapsSection({ slices, gaps }: Operations): Section {
  const counts = Object.entries(slices).map(([status, count]) => `${rounded(String(count))} ${status}`);
  const note = html`<p class="note">Of all slices, which are a series on a day each: ${counts.join(", ")}.</p>
`;
  return { id: "gaps", title: "Gaps", body: html`${note}${gapsTable(gaps)}` };
}

function gapsTable(gaps: readonly Gap[]): Html {
  if (gaps.length === 0) return html`<p class="empty">No day that is due is missing or failed.</p>`;
  const groups = groupGaps(gaps);
  const more = groups.length - GAPS_SHOWN_MAX;
  const rest =
    more > 0 ? html`<p class="note">And ${more} more: see the view <code>bi.coverage_gaps</code>.</p>` : undefined;
  const rows = groups
    .slice(0, GAPS_SHOWN_MAX)
    .map((group) => [
      windowText({ start: group.from, end: group.to }),
      html`${stateHtml(group.status)} ${longText(group.error)}`,
      seriesCell(group),
    ]);
  return html`${table("Days that are missing or failed, of all time", COLUMNS, rows)}${rest}`;
}

function seriesCell({ series: [first, ...others] }: GapGroup): Html | undefined {
  if (first === undefined || others.length === 0) return first && seriesHtml(first);
  const shown = others.slice(0, SERIES_SHOWN_MAX - 1);
  const more = others.length - shown.length;
  const names = [first, ...shown].map((one) => html`<br>${seriesHtml(one)}`);
  return html`<details><summary>${others.length + 1} series</summary>${names}${more > 0 ? html`<br>and ${more} more` : undefined}</details>`;
}
