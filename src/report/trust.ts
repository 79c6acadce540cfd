// Says in words whether the numbers of a report can be trusted: what is here, what is missing, and which figures are too low. Pure.

import { daysHtml } from "./days.ts";
import { counted } from "./figures.ts";
import { type Html, html } from "./html.ts";
import { nameHtml } from "./names.ts";
import type { Coverage, ReportData, SliceStatus } from "./report-data.ts";

type Lacking = Exclude<SliceStatus, "complete">;

const MEANINGS: Readonly<Record<Lacking, string>> = {
  missing: "never read",
  failed: "the service refused or did not answer; earlier numbers of that day, if there were any, stay",
  suspect: "came back empty where there was usage; the numbers before are kept until that is confirmed",
};
const LACKING: readonly Lacking[] = ["missing", "failed", "suspect"];

/** The notice at the top of a report. */
export function trustNotice(data: ReportData): Html {
  const { coverage, totals } = data;
  return html`${verdict(data)}${coverage.series.length === 0 ? undefined : leftOut(totals.projectsLeftOut)}`;
}

function verdict(data: ReportData): Html {
  const { counts, series } = data.coverage;
  if (series.length === 0)
    return notice("none", html`<strong>There are no numbers yet.</strong> No job has read any usage.`);
  const lacking = LACKING.reduce((sum, status) => sum + counts[status], 0);
  if (lacking > 0) return incompleteNotice(data);
  if (counts.complete === 0) {
    return notice("none", html`<strong>Nothing was due in this period.</strong> The jobs read no day of it.`);
  }
  const low = tooLow(data);
  if (low.length > 0) {
    return notice(
      "bad",
      html`<strong>A day was read before it was over.</strong> <p>Too low until it is read again: ${low.join(", ")}.</p>`,
    );
  }
  return notice(
    "good",
    html`<strong>Everything that was due is here${through(data.coverage)}.</strong> ${unread(data)}`,
  );
}

function incompleteNotice(data: ReportData): Html {
  const { counts, lackingDays: days } = data.coverage;
  const low = tooLow(data);
  return notice(
    "bad",
    html`<strong>${counted(days.length, "day is", "days are")} not complete: ${daysHtml(days)}.</strong>
${
  low.length > 0
    ? html`<p>Too low, as usage of these days is not in them: ${low.join(", ")}.</p>`
    : html`<p>The figures and charts of usage come from other series, and are whole.</p>`
}
<ul>${LACKING.filter((status) => counts[status] > 0).map(
      (status) => html`<li><b>${status}</b>, ${counted(counts[status], "time")}: ${MEANINGS[status]}</li>`,
    )}</ul>
<p>Counted by series and day. <a href="#coverage">Which, and why</a></p>`,
  );
}

function tooLow({ totals, breakdowns, rankings }: ReportData): string[] {
  return [
    ...(totals.incompleteDays > 0 ? ["the headline figures"] : []),
    ...breakdowns
      .filter(({ incompleteDays }) => incompleteDays.length > 0)
      .map(({ grouping }) => `usage by ${grouping}`),
    ...rankings.filter(({ incompleteDays }) => incompleteDays > 0).map(({ grouping }) => `top ${plural(grouping)}`),
  ];
}

function plural(grouping: "accessor" | "tags"): string {
  return grouping === "tags" ? "tags" : "accessors";
}

function through({ dueThrough }: Coverage): string {
  return dueThrough === undefined ? "" : ` through ${dueThrough}`;
}

/** What is not late and yet not in the figures. */
function unread({ coverage, totals }: ReportData): string {
  const { days, dueThrough } = coverage;
  if (days.some((day) => dueThrough !== undefined && day > dueThrough))
    return "The days after it are not due yet for every series.";
  return totals.unreadDays > 0 ? "The figures are without the days before their series began." : "";
}

function leftOut(projects: readonly string[]): Html | undefined {
  if (projects.length === 0) return undefined;
  return notice(
    "none",
    html`The headline figures are without ${projects.map((project, i) => html`${i > 0 ? ", " : ""}${nameHtml(project)}`)}: no series that adds up to a total is read there now.`,
  );
}

function notice(kind: "good" | "bad" | "none", content: Html): Html {
  return html`<div class="notice ${kind}">${content}</div>
`;
}
