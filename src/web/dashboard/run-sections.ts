// What the page of one run shows. Pure.

import { PROJECT_OUTCOMES, PROJECTS_PER_PAGE, type RunDetails } from "../../facts/operations.ts";
import { counted, roundedText } from "../../show/format.ts";
import { columns, type HtmlValue, html, numberColumns, table } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import { foldedText, instantHtml, stateHtml } from "./cells.ts";
import { RUN_COLUMNS, runCells } from "./jobs-sections.ts";
import { chosen, listForm, nothingListed, pageLinksOf, selectField, textField } from "./lists.ts";
import type { View } from "./view.ts";

export function runSections(details: RunDetails, view: View): readonly Section[] {
  const { run } = details;
  const outcome = table("The run, times in UTC", RUN_COLUMNS, [[instantHtml(run.startedAt), ...runCells(run)]]);
  const id = html`<p class="note">Its id is <code>${run.runId}</code>; in SQL it is a row of <code>bi.runs</code>, and why a day failed is in <code>bi.coverage</code>.</p>`;
  const sections = [{ id: "outcome", title: "Outcome", body: html`${outcome}${id}` }];
  return run.kind === "rotation" ? sections : [...sections, projectsSection(details, view)];
}

const PROJECT_COLUMNS = [
  ...columns("Project", "Outcome", "Ended"),
  ...numberColumns("Requests", "Slices", "Complete", "Suspect", "Failed", "Rows changed"),
];

function projectsSection({ found, projects }: RunDetails, view: View): Section {
  const rows = projects.map((one): readonly HtmlValue[] => [
    one.project,
    html`${stateHtml(one.outcome)} ${foldedText(one.error)}`,
    one.finishedAt ? instantHtml(one.finishedAt) : "–",
    ...[one.requests, one.planned, one.complete, one.suspect, one.failed, one.rowsChanged].map((count) =>
      roundedText(String(count)),
    ),
  ]);
  const fields = [
    selectField("Outcome", "outcome", PROJECT_OUTCOMES, chosen(view, "outcome")),
    textField("Project", "project", view.project),
  ];
  const form = listForm("run", view, fields, { project: undefined });
  const listed =
    rows.length === 0
      ? nothingListed("run", { ...view, project: undefined }, "projects")
      : html`${table("Those that went wrong first, then the newest, times in UTC", PROJECT_COLUMNS, rows, { sortable: true })}${pageLinksOf("run", view, found, PROJECTS_PER_PAGE)}`;
  const body = html`<p class="note">${counted(found, "project")}.</p>
${form}${listed}`;
  return { id: "projects", title: "Projects", body };
}
