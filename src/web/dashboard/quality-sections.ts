// What the page on the quality of the data shows besides the sections of the report. Pure.

import { type GapGroup, groupGaps } from "../../facts/completeness.ts";
import type { Coverage } from "../../facts/coverage.ts";
import type { HealthState } from "../../facts/health.ts";
import { type StretchHref, seriesHtml } from "../../show/coverage-section.ts";
import { exactText, metricName, roundedText, windowText } from "../../show/format.ts";
import { columns, type Html, html, nameHtml, numberColumns, table } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import { ALL_USAGE } from "../../usage/series.ts";
import { knownProjects, projectValue } from "../projects.ts";
import { foldedText, stateHtml } from "./cells.ts";
import { pageHref } from "./frame.ts";
import { type View, viewQuery } from "./view.ts";

// The gaps of all time.

const GAPS_SHOWN_MAX = 50;
const SERIES_SHOWN_MAX = 100;

export function gapsSection({ slices, gaps, gapsLeftOut }: HealthState): Section {
  const counts = Object.entries(slices).map(([status, count]) => `${roundedText(String(count))} ${status}`);
  const note = html`<p class="note">Of all slices, which are a series on a day each: ${counts.join(", ")}.</p>
`;
  return { id: "gaps", title: "Gaps", body: html`${note}${gapsTable(gaps, gapsLeftOut)}` };
}

function gapsTable(gaps: HealthState["gaps"], leftOut: number): Html {
  if (gaps.length === 0) return html`<p class="empty">No day that is due is missing or failed.</p>`;
  const groups = groupGaps(gaps);
  const more = Math.max(groups.length - GAPS_SHOWN_MAX, 0) + leftOut;
  const rest =
    more > 0 ? html`<p class="note">And ${more} more: see the view <code>bi.coverage_gaps</code>.</p>` : undefined;
  const rows = groups
    .slice(0, GAPS_SHOWN_MAX)
    .map((group) => [
      windowText({ start: group.from, end: group.to }),
      html`${stateHtml(group.status)} ${foldedText(group.error)}`,
      seriesCell(group),
    ]);
  return html`${table("Days that are missing or failed, of all time", columns("Days", "Status", "Series"), rows)}${rest}`;
}

function seriesCell({ series: [first, ...others] }: GapGroup): Html | undefined {
  if (first === undefined || others.length === 0) return first && seriesHtml(first);
  const shown = others.slice(0, SERIES_SHOWN_MAX - 1);
  const more = others.length - shown.length;
  const names = [first, ...shown].map((one) => html`<br>${seriesHtml(one)}`);
  return html`<details><summary>${others.length + 1} series</summary>${names}${more > 0 ? html`<br>and ${more} more` : undefined}</details>`;
}

/** A complete stretch of the coverage map leads to its usage, another to why it is not complete. */
export function stretchHrefs(view: View, { projects }: Pick<HealthState, "projects">): StretchHref {
  const known = knownProjects(projects);
  // By id: a series has many stretches.
  const values = new Map<string, string>();
  return ({ project: name, projectId: id, grouping, filter }, { start, end, status }) => {
    if (status === undefined) return undefined;
    const project = values.get(id) ?? projectValue({ id, name }, known);
    values.set(id, project);
    const period = { start, end, live: false, name: undefined };
    if (status !== "complete")
      return `${pageHref("quality", "quality")}${viewQuery(view, { period, project })}#coverage`;
    const more = Object.entries({ grouping, ...(filter === ALL_USAGE.name ? {} : { filter }) });
    return `${pageHref("quality", "usage")}${viewQuery(view, { period, project, more })}`;
  };
}

const FINALITY_MEANINGS: Readonly<Record<string, string>> = {
  final: "no job reads them again",
  settling: "their window is not over: jobs read them again, and numbers may still change",
  open: "the day is not over, or was not read since",
};

/** Which days of the period may still change. */
export function finalitySection({ finality }: Coverage): Section {
  const rows = finality.map((one) => [
    html`<span class="state ${one.finality === "final" ? "good" : "warn"}">${one.finality}</span>`,
    windowText(one),
    exactText(String(one.days)),
    exactText(String(one.slices)),
    FINALITY_MEANINGS[one.finality],
  ]);
  const titles = [...columns("Finality", "From, to"), ...numberColumns("Days", "Slices"), ...columns("Meaning")];
  const body =
    rows.length === 0
      ? html`<p class="empty">No day of this period was read.</p>`
      : table("Slices of the period, by whether they may still change", titles, rows);
  return { id: "finality", title: "Open days", body };
}

/** Where the service's own numbers do not agree with each other. */
export function differencesSection({ differences, differencesLeftOut }: Coverage): Section {
  const title = { id: "reconciliation", title: "Reconciliation" };
  if (differences === "left out")
    return {
      ...title,
      body: html`<p class="note">Not compared here: for so many projects that takes too long. Choose one of them, or ask <code>bi.reconciliation</code>.</p>`,
    };
  const rows = differences.map((one) => [
    one.day,
    nameHtml(one.project),
    one.source,
    one.grouping.replaceAll(",", ", "),
    metricName(one.metric),
    ...[one.total, one.sumOfGroups, one.difference].map(exactText),
  ]);
  const titles = [
    ...columns("Day", "Project", "Source", "Grouping", "Metric"),
    ...numberColumns("Total", "Sum of groups", "Difference"),
  ];
  const more =
    differencesLeftOut > 0
      ? html`<p class="note">And ${differencesLeftOut} more: see the view <code>bi.reconciliation</code>.</p>`
      : undefined;
  const body =
    rows.length === 0
      ? html`<p class="empty">Of every day that was read, the groups add up to the total.</p>`
      : html`${table("Days on which the sum over a grouping differs from the total, the newest first", titles, rows)}${more}`;
  return { ...title, body };
}
