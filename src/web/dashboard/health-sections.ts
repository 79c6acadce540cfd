// The page Data health: why numbers are missing, which ones, and whether jobs and API keys do what they should. A section about something that
// is not there is left out. Pure.

import type { Coverage } from "../../facts/coverage.ts";
import type { HealthState } from "../../facts/health.ts";
import type { KeysData } from "../../facts/keys.ts";
import type { Restatement, Restatements } from "../../facts/restatements.ts";
import type { RecentRun } from "../../facts/runs.ts";
import { coverageSection, seriesHtml, type UsageHref } from "../../show/coverage-section.ts";
import { changeText, counted, exactText, instantText, metricName, roundedText } from "../../show/format.ts";
import {
  columns,
  folded,
  foldedText,
  groupHtml,
  type Html,
  html,
  instantHtml,
  nameHtml,
  numberColumns,
  table,
} from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import { knownProjects, projectValue } from "../projects.ts";
import { type View, viewQuery } from "../question.ts";
import { pageHref } from "./frame.ts";
import { jobsSection, runsSection } from "./jobs-sections.ts";
import { keysSections } from "./keys-sections.ts";

export type DataHealth = {
  readonly coverage: Coverage;
  readonly restatements: Restatements;
  /** The newest first. */
  readonly runs: readonly RecentRun[];
  readonly keys: KeysData;
};

export function healthSections(data: DataHealth, view: View, health: HealthState): readonly Section[] {
  return [
    ...causesSection(health),
    coverageSection(data.coverage, usageHrefs(view, health)),
    ...anomaliesSection(health),
    ...differencesSection(data.coverage),
    ...restatementsSection(data.restatements),
    ...jobsSection(health, data.runs),
    ...runsSection(data.runs, health, view),
    ...keysSections(data.keys),
  ];
}

function usageHrefs(view: View, { projects }: HealthState): UsageHref {
  const known = knownProjects(projects);
  return ({ projectId: id, project: name }, { start, end }) => {
    const period = { start, end, name: undefined };
    const changes = { period, project: projectValue({ id, name }, known), more: [] };
    return `${pageHref("usage")}${viewQuery(view, changes)}`;
  };
}

/** "The service does not answer (503)". */
export function causeWords({
  code,
  error,
  project,
}: Pick<HealthState["causes"][number], "code" | "error" | "project">): string {
  const [, status] = /\b([45]\d\d)\b/.exec(error) ?? [];
  const answer = status === undefined ? "" : ` (${status})`;
  const key = project === undefined ? "an API key" : `the API key of ${project}`;
  if (code === "unavailable") return `The service does not answer${answer}`;
  if (code === "unauthorized") return `The service refuses ${key}${answer}`;
  return code === "rate_limited" ? `The service asks to wait${answer}` : `Reading usage fails${answer}`;
}

const CAUSE_COLUMNS = [
  ...columns("Cause", "Since"),
  ...numberColumns("Readings that failed", "Of them with older numbers"),
  ...columns("Next try"),
];

/** One row a cause: an outage fails many readings at once. None if nothing is failed. */
function causesSection({ causes }: HealthState): readonly Section[] {
  if (causes.length === 0) return [];
  const rows = causes.map((cause) => [
    html`<span class="state bad">${causeWords(cause)}</span> <small>${foldedText(cause.error)}</small>`,
    instantHtml(cause.since),
    ...[cause.slices, cause.slicesWithNumbers].map((count) => roundedText(String(count))),
    cause.nextTry ? instantHtml(cause.nextTry) : "none is planned",
  ]);
  const note = html`<p class="note">A reading is one project's usage of one day, in total or by one dimension. Times are in UTC.</p>
`;
  const body = html`${note}${table("Why readings fail now", CAUSE_COLUMNS, rows)}`;
  return [{ id: "causes", title: "Causes", body }];
}

const ANOMALY_COLUMNS = [
  ...columns("Day", "Project", "Metric"),
  ...numberColumns("Amount", "Usually from", "to"),
  ...columns("Alert"),
];
const ROWS_MAX = 50;

function anomaliesSection({ anomalies }: HealthState): readonly Section[] {
  const all = anomalies
    .flatMap(({ anomalies: found, ...usage }) => found.map((one) => ({ ...usage, ...one })))
    .sort((a, b) => (a.day < b.day ? 1 : a.day > b.day ? -1 : 0));
  if (all.length === 0) return [];
  const rows = all
    .slice(0, ROWS_MAX)
    .map(({ day, project, filter, unfiltered, metric, amount, low, high, isOpen }) => [
      day,
      unfiltered ? nameHtml(project) : html`${nameHtml(project)} <small>${nameHtml(filter)}</small>`,
      metricName(metric),
      roundedText(amount),
      roundedText(low),
      roundedText(high),
      isOpen ? "open" : "over",
    ]);
  const caption = "Days of the last 30 that were unusual compared with the weeks before";
  const body = html`${table(caption, ANOMALY_COLUMNS, rows)}${moreNote(all.length - rows.length, "usage_anomalies")}`;
  return [{ id: "anomalies", title: "Unusual usage", body }];
}

function moreNote(more: number, view: string): Html | undefined {
  return more > 0 ? html`<p class="note">And ${more} more: see the view <code>bi.${view}</code>.</p>` : undefined;
}

const DIFFERENCE_COLUMNS = [
  ...columns("Day", "Project", "Of", "By", "Metric"),
  ...numberColumns("Total", "Sum of groups", "Difference"),
];

/** Where the service's own numbers do not agree with each other. */
function differencesSection({ differences, differencesLeftOut }: Coverage): readonly Section[] {
  if (differences === "left out" || differences.length === 0) return [];
  const rows = differences.map((one) => [
    one.day,
    nameHtml(one.project),
    one.source,
    one.grouping.replaceAll(",", ", "),
    metricName(one.metric),
    ...[one.total, one.sumOfGroups, one.difference].map(exactText),
  ]);
  const caption = "Days on which the groups do not add up to the total that the service sent, the newest first";
  const shown = html`${table(caption, DIFFERENCE_COLUMNS, rows)}${moreNote(differencesLeftOut, "reconciliation")}`;
  const title = "Totals that differ from their groups";
  const summary = counted(differences.length + differencesLeftOut, "difference");
  return [{ id: "reconciliation", title, body: folded(summary, shown) }];
}

const RESTATEMENT_COLUMNS = [
  ...columns("Day", "Of", "Group", "Metric"),
  ...numberColumns("Old", "New", "Change"),
  ...columns("Seen"),
];

function restatementsSection({ count, newest }: Restatements): readonly Section[] {
  if (count === 0) return [];
  const summary = counted(count, "change of a total", "changes of totals");
  const note = html`<p class="note">Late usage arrives after a day is first read. The view <code>bi.restatements</code> has every change.</p>
`;
  const shown = html`${note}${table("Old and new numbers, the newest changes first", RESTATEMENT_COLUMNS, newest.map(restated))}`;
  return [{ id: "restatements", title: "Numbers that changed later", body: folded(summary, shown) }];
}

function restated(one: Restatement) {
  return [
    one.day,
    seriesHtml(one),
    one.grouping === "none" ? "all" : groupHtml(one.grouping, one.group),
    nameHtml(metricName(one.metric)),
    one.old === null ? "none" : exactText(one.old),
    one.new === null ? "none" : exactText(one.new),
    one.old === null ? "new" : one.new === null ? "gone" : changeText(one.new, one.old),
    instantText(one.seenAt),
  ];
}
