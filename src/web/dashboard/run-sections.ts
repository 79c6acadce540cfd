// What the page of one run shows. Pure.

import { REQUESTS_PER_PAGE, type RunDetails } from "../../health/operations.ts";
import { seriesHtml } from "../../show/coverage-section.ts";
import { counted, roundedText, windowText } from "../../show/format.ts";
import { columns, type Html, type HtmlValue, html, numberColumns, table } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import { REQUEST_OUTCOMES } from "../../usage/export.ts";
import { foldedText, instantHtml, stateHtml } from "./cells.ts";
import { RUN_COLUMNS, runCells } from "./jobs-sections.ts";
import { chosen, listForm, nothingListed, pageLinksOf, selectField, textField } from "./lists.ts";
import type { View } from "./view.ts";

export function runSections(details: RunDetails, view: View): readonly Section[] {
  const { run, requests } = details;
  const outcome = table("The run, times in UTC", RUN_COLUMNS, [[instantHtml(run.startedAt), ...runCells(run)]]);
  const id = html`<p class="note">Its id is <code>${run.runId}</code>; in SQL it is a row of <code>bi.runs</code>, and its requests are rows of <code>bi.run_requests</code>.</p>`;
  const sections = [{ id: "outcome", title: "Outcome", body: html`${outcome}${id}` }];
  if (run.kind === "rotation") return sections;
  return [...sections, ...causesSection(requests.causes), openSection(details), requestsSection(details, view)].flat();
}

const CAUSE_COLUMNS = [...columns("Cause"), ...numberColumns("Requests", "Projects")];

function causesSection(causes: RunDetails["requests"]["causes"]): readonly Section[] {
  if (causes.length === 0) return [];
  const rows = causes.map(({ code, error, requests, projects }) => [
    html`<span class="state bad">${code ?? "other"}</span> ${foldedText(error)}`,
    roundedText(String(requests)),
    roundedText(String(projects)),
  ]);
  const body = table("Why requests of this run failed", CAUSE_COLUMNS, rows);
  return [{ id: "causes", title: "Failures by cause", body }];
}

/** None if every request that was queued has an outcome. */
function openSection({ open, openLeftOut }: RunDetails): readonly Section[] {
  if (open.length === 0) return [];
  const rows = open.map((request) => [
    seriesHtml(request),
    daysText(request),
    request.error === null ? "not made yet" : foldedText(request.error),
  ]);
  const more = openLeftOut > 0 ? html`<p class="note">And ${counted(openLeftOut, "more request")}.</p>` : undefined;
  const body = html`${table("Requests without an outcome", columns("Series", "Days", "Last attempt"), rows)}${more}`;
  return [{ id: "open-requests", title: "Open requests", body }];
}

const REQUEST_COLUMNS = [
  ...columns("Series", "Days", "Outcome", "Ended"),
  ...numberColumns("Service took", "Rows changed"),
];

function requestsSection({ run, requests: { counts, found, requests } }: RunDetails, view: View): Section {
  const rows = requests.map((request): readonly HtmlValue[] => [
    seriesHtml(request),
    daysText(request),
    html`${stateHtml(request.outcome)} ${foldedText(request.error)}`,
    html`<time datetime="${request.endedAt.toISOString()}">${request.endedAt.toISOString().slice(11, 19)}</time>`,
    request.tookMs === null
      ? "–"
      : html`<data value="${request.tookMs}">${roundedText(String(request.tookMs))} ms</data>`,
    roundedText(String(request.rowsChanged)),
  ]);
  const summary = counts.map(({ outcome, requests: count }) => `${roundedText(String(count))} ${outcome}`).join(", ");
  const fields = [
    selectField("Outcome", "outcome", REQUEST_OUTCOMES, chosen(view, "outcome")),
    textField("Project", "project", view.project),
  ];
  const isNarrowed = view.more !== undefined || view.project !== undefined;
  const note = html`<p class="note">${counts.length > 0 ? `${summary}. ` : ""}The outcome is that of the worst of its days. “Service took” is from the last call until the answer had been read.${isNarrowed ? ` ${counted(found, "request")} shown here.` : ""}</p>
`;
  const form = listForm("run", view, fields, { project: undefined });
  const listed =
    rows.length === 0
      ? nothingListed("run", { ...view, project: undefined }, "requests")
      : html`${table("Those that went wrong first, then the newest, times in UTC", REQUEST_COLUMNS, rows, { sortable: true })}${pageLinksOf("run", view, found, REQUESTS_PER_PAGE)}`;
  const body = counts.length === 0 ? noRequests(run) : html`${note}${form}${listed}`;
  return { id: "requests", title: "Requests", body };
}

function noRequests({ requests, status }: RunDetails["run"]): Html {
  if (requests > 0)
    return html`<p class="empty">They are not kept any more: the requests of a run are deleted 14 days after it started. An earlier version of usage-export did not keep them.</p>`;
  return html`<p class="empty">${status === "running" ? "None has an outcome yet." : "The run made none."}</p>`;
}

function daysText({ from, to }: { readonly from: string | null; readonly to: string | null }): string {
  return from === null ? "chosen by the service" : windowText({ start: from, end: to ?? from });
}
