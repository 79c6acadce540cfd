// Sections about jobs and runs: when the jobs run and how long they take, the newest runs, and the page of one run. Pure.

import type { HealthState } from "../../facts/health.ts";
import type { JobHealth, RunDetails, StoredRun } from "../../facts/jobs.ts";
import { counted, durationText, exactText, secondsTaken } from "../../show/format.ts";
import {
  boxes,
  folded,
  foldedText,
  type Html,
  type HtmlValue,
  html,
  instantHtml,
  nameHtml,
  shortNameHtml,
  stackedTable,
  stateHtml,
  type TableColumn,
  type TableRow,
} from "../../show/html.ts";
import { present } from "../../text.ts";
import type { RunCounts } from "../../usage/counts.ts";
import { pageHref, type View } from "../url.ts";
import type { Section } from "./frame.ts";

export function jobsSection({ jobs, workers }: HealthState, runs: readonly StoredRun[]): Section {
  const live = workers.filter(({ state }) => state === "live").length;
  const workersText =
    live === 0
      ? "No worker is running, so no job starts by itself"
      : `${counted(live, "worker is", "workers are")} running`;
  const rows = jobs.map((job) => [
    html`${nameHtml(job.job)} <small>${job.kind}, ${scheduleText(job.schedule)} (${job.timezone})</small>`,
    lastSuccessCell(job),
    durationsText(runs.filter(({ job: name }) => name === job.job)),
    nextRunCell(job),
  ]);
  const table = stackedTable("When the jobs run", ["Job", "Last success", "Last run took", "Next run"], rows);
  return { id: "jobs", title: "Jobs", body: html`${table}<p class="note">${workersText}.</p>` };
}

/** A backfill does not count as a success of the job, because a person chose its days. */
function lastSuccessCell({ lastSuccess, lastRun }: JobHealth): HtmlValue {
  if (lastSuccess !== null) return instantHtml(new Date(lastSuccess * 1000));
  return lastRun?.trigger === "backfill" ? "none yet; backfills do not count" : "none yet";
}

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** "every day 02:15", "every Monday 05:00"; any other schedule is shown as it is configured. */
export function scheduleText(schedule: string): string {
  const [, minute = "", hour = "", days = ""] = /^(\d{1,2}) (\d{1,2}) \* \* (\*|[0-7])$/.exec(schedule.trim()) ?? [];
  if (minute === "") return schedule;
  return `every ${days === "*" ? "day" : WEEKDAYS[Number(days)]} ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
}

/** The duration of the newest run beside the usual one, so that people see a job that takes longer than it did. */
function durationsText(runs: readonly StoredRun[]): string {
  const ended = runs.flatMap((run) => secondsTaken(run) ?? []);
  const [newest] = ended;
  if (newest === undefined) return "–";
  const median = ended.toSorted((a, b) => a - b)[Math.floor(ended.length / 2)] ?? newest;
  const [took, usual] = [durationText(newest), durationText(median)];
  return ended.length > 2 && usual !== took ? `${took}, usually ${usual}` : took;
}

function nextRunCell({ nextRun, paused, overdueSince }: JobHealth): Html {
  if (paused)
    return html`${stateHtml("paused")} since ${instantHtml(paused.at)} <small>by ${nameHtml(paused.by)}</small> ${foldedText(paused.why)}`;
  const next = nextRun ? instantHtml(nextRun) : html`none`;
  if (!overdueSince) return next;
  return html`${stateHtml("overdue")} since ${instantHtml(overdueSince)} <small>next ${next}</small>`;
}

const COUNT_COLUMNS = [{ numbers: "Requests" }, { numbers: "Readings" }, { numbers: "Rows changed" }];
const RUN_COLUMNS = ["Job", "Outcome", { numbers: "Took" }, ...COUNT_COLUMNS];
const RUNS_SHOWN = 10;
const READING_MEANING = "A reading is one day of one project, in total or grouped, with or without a filter.";

/** The newest runs, and earlier runs that failed, were stopped or were interrupted. */
export function runsSection(runs: readonly StoredRun[], view: View): Section {
  const shown = runs.filter(({ status }, i) => i < RUNS_SHOWN || (status !== "ok" && status !== "running"));
  const rows = shown.map((run) => {
    const href = pageHref("run", view, { id: run.runId });
    return [html`<a href="${href}">${instantHtml(run.startedAt)}</a>`, ...runCells(run)];
  });
  const caption = `The newest ${RUNS_SHOWN}, and earlier ones that did not end well. ${READING_MEANING}`;
  return { id: "runs", title: "Runs", body: stackedTable(caption, ["Started", ...RUN_COLUMNS], rows) };
}

const TRIGGERS: Readonly<Record<string, string>> = {
  schedule: "on schedule",
  manual: "by hand",
  catchup: "catching up",
};

/** The last three cells stay empty for a rotation, which reads no usage. */
function runCells(run: StoredRun): TableRow {
  const seconds = secondsTaken(run);
  return [
    html`${nameHtml(run.job)} <small>${run.kind}, ${TRIGGERS[run.trigger] ?? run.trigger}</small>`,
    html`${stateHtml(run.status)} ${foldedText(run.error)}`,
    seconds !== undefined && durationText(seconds),
    ...(run.kind === "rotation" ? [undefined, undefined, undefined] : readingCells(run)),
  ];
}

function readingCells(counts: RunCounts): readonly string[] {
  return [exactText(counts.requests), readingsText(counts), exactText(counts.rowsChanged)];
}

/** "all 112", "110 of 112, 2 failed" */
function readingsText({ planned, complete, suspect, failed, undated, stale }: RunCounts): string {
  if (failed === planned && failed > 0) return `all ${exactText(failed)} failed`;
  const others = Object.entries({ "without a date": undated, failed, "in doubt": suspect, outdated: stale });
  const read = complete === planned ? `all ${exactText(planned)}` : `${exactText(complete)} of ${exactText(planned)}`;
  return [read, ...others.flatMap(([name, count]) => (count > 0 ? [`${exactText(count)} ${name}`] : []))].join(", ");
}

const PROJECT_COLUMNS = ["Project", "Outcome", "Ended", ...COUNT_COLUMNS];

/** More projects are folded, because in an outage all rows say the same. */
const UNFOLDED_MAX = 8;

export function projectTable(caption: string, columns: readonly TableColumn[], rows: readonly TableRow[]): Html {
  const others = rows.slice(UNFOLDED_MAX);
  return html`${stackedTable(caption, columns, rows.slice(0, UNFOLDED_MAX))}${
    others.length > 0 && folded(counted(others.length, "more project"), stackedTable("More projects", columns, others))
  }`;
}

/** The page of one run. `projects` come with the worst outcome first; within an outcome, names are sorted. A common error is shown once. */
export function runSections({ run, projectCount, projects }: RunDetails): readonly Section[] {
  const failed = projects.filter(({ outcome }) => outcome === "failed");
  const [error, ...otherErrors] = new Set(failed.map((one) => one.error));
  const commonError = failed.length > 1 && otherErrors.length === 0 ? (error ?? null) : null;
  const note = html`<p class="note">${READING_MEANING}</p><p class="note">In SQL: <code>select * from bi.runs where run_id = '${run.runId}'</code></p>`;
  const sorted = [...Map.groupBy(projects, ({ outcome }) => outcome).values()].flatMap((ofOutcome) =>
    ofOutcome.toSorted((a, b) => a.project.localeCompare(b.project, "en", { numeric: true })),
  );
  const rows = sorted.map<TableRow>((one) => [
    shortNameHtml(one.project),
    html`${stateHtml(one.outcome === "open" ? "not done yet" : one.outcome)} ${one.error !== commonError && foldedText(one.error)}`,
    one.finishedAt ? instantHtml(one.finishedAt) : "–",
    ...readingCells(one),
  ]);
  const more = projectCount - projects.length;
  const areAllOk = projects.every(({ outcome }) => outcome === "ok");
  const caption = areAllOk ? "What was read of each project" : "Failed ones first, then those that are not done yet";
  const reason = commonError !== null && html`<p class="notice bad">Why they failed: <bdi>${commonError}</bdi></p>\n`;
  const projectsHtml = html`${reason}${projectTable(caption, PROJECT_COLUMNS, rows)}${
    more > 0 && html`<p class="note">${counted(more, "project")} not shown, with the same outcome or a better one.</p>`
  }`;
  return present<Section>([
    { id: "outcome", title: "Outcome", body: html`${boxes(RUN_COLUMNS, runCells(run))}${note}` },
    projectCount > 0 && { id: "projects", title: counted(projectCount, "project"), body: projectsHtml },
  ]);
}
