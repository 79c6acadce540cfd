// Jobs, workers and runs. Pure.

import { type HealthState, queueTotals } from "../../facts/health.ts";
import type { WorkerHealth } from "../../facts/health-facts.ts";
import type { JobHealth } from "../../facts/job-health.ts";
import { type RecentRun, RUN_STATUSES, type RunList } from "../../facts/operations.ts";
import { counted, roundedText } from "../../show/format.ts";
import {
  columns,
  folded,
  type Html,
  type HtmlValue,
  html,
  joinHtml,
  nameHtml,
  numberColumns,
  table,
} from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import { foldedText, instantHtml, stateHtml } from "./cells.ts";
import { pageHref } from "./frame.ts";
import { chosen, listForm, nothingListed, pageLinks, selectField, textField } from "./lists.ts";
import { type View, viewQuery } from "./view.ts";

// Jobs, the queue and workers.

const WORKERS_SHOWN_MAX = 20;

/** None if no job is configured and none was. */
export function jobsSection({ jobs, queue, workers, callPauses }: HealthState): readonly Section[] {
  if (jobs.length === 0) return [];
  const texts = queueTotals(queue).flatMap((one) => (one.jobs > 0 ? [one.text] : []));
  const rows = jobs.map((job) => [jobCell(job), lastSuccessCell(job), lastRunCell(job), nextRunCell(job)]);
  const titles = columns("Job", "Last success", "Last run", "Next run");
  const waiting = texts.length > 0 ? html`<p>In the queue: ${texts.join(", ")}.</p>` : undefined;
  return [
    {
      ...{ id: "jobs", title: "Jobs" },
      body: html`${table("Times in UTC", titles, rows)}${waiting}${pausesHtml(callPauses)}
${workersHtml(workers)}`,
    },
  ];
}

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** "every day 02:15", "every Monday 05:00"; another schedule as it is written. */
export function scheduleText(schedule: string): string {
  const [, minute = "", hour = "", days = ""] = /^(\d{1,2}) (\d{1,2}) \* \* (\*|[0-7])$/.exec(schedule.trim()) ?? [];
  if (minute === "") return schedule;
  return `every ${days === "*" ? "day" : WEEKDAYS[Number(days)]} ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
}

const PAUSES_SHOWN_MAX = 20;

function pausesHtml(pauses: HealthState["callPauses"]): Html {
  if (pauses.length === 0) return html``;
  const others = pauses.length - PAUSES_SHOWN_MAX;
  const texts = [
    ...pauses
      .slice(0, PAUSES_SHOWN_MAX)
      .map(({ key, until }) =>
        key === ""
          ? html`all keys until ${instantHtml(until)}`
          : html`the key of ${nameHtml(key)} until ${instantHtml(until)}`,
      ),
    ...(others > 0 ? [html`${counted(others, "other key")} (<code>usage-export status</code> names each)`] : []),
  ];
  return html`
<p>${stateHtml("paused")} Calls are paused with ${joinHtml(texts, ", ")}, as the service asked.</p>`;
}

function workersHtml(workers: readonly WorkerHealth[]): Html {
  if (workers.length === 0)
    return html`<p class="empty">No worker was ever seen. <code>usage-export start</code> starts one.</p>`;
  const rows = workers
    .slice(0, WORKERS_SHOWN_MAX)
    .map((worker) => [
      html`${nameHtml(worker.host)} <small>pid ${worker.pid}</small>`,
      stateHtml(worker.state),
      instantHtml(worker.lastSeenAt),
      instantHtml(worker.startedAt),
      nameHtml(worker.version),
    ]);
  const titles = columns("Worker", "State", "Last seen", "Started", "Version");
  return folded(
    `${counted(workers.length, "worker")} seen in the last week`,
    table("Workers, times in UTC", titles, rows),
  );
}

function jobCell({ kind, job, schedule, timezone }: JobHealth): Html {
  return html`${nameHtml(job)} <small>${kind}, ${scheduleText(schedule)} (${timezone})</small>`;
}

function lastSuccessCell({ lastSuccess }: JobHealth): Html | string {
  return lastSuccess === null ? "never" : instantHtml(new Date(lastSuccess * 1000));
}

function lastRunCell({ lastRun }: JobHealth): Html | string {
  if (!lastRun) return "never";
  return html`${stateHtml(lastRun.status)} ${instantHtml(lastRun.startedAt)} <small>${lastRun.trigger}</small>`;
}

function nextRunCell({ nextRun, paused, overdueSince }: JobHealth): Html {
  if (paused) {
    return html`${stateHtml("paused")} since ${instantHtml(paused.at)} <small>by ${nameHtml(paused.by)}</small> ${foldedText(paused.why)}`;
  }
  const next = nextRun ? instantHtml(nextRun) : html`none`;
  return overdueSince
    ? html`${stateHtml("overdue")} since ${instantHtml(overdueSince)} <small>next ${next}</small>`
    : next;
}

// Runs with their errors.

export const RUN_COLUMNS = [
  ...columns("Started", "Job", "Outcome"),
  ...numberColumns("Took", "Requests", "Readings", "Rows changed"),
];

/** More jobs are not listed: their name is typed. */
const JOBS_LISTED_MAX = 100;

/** None if no job is configured and none has run. */
export function runsSection({ runs, hasMore }: RunList, { jobs }: HealthState, view: View): readonly Section[] {
  if (jobs.length + runs.length === 0 && view.more === undefined) return [];
  const rows = runs.map((run) => [
    html`<a href="${pageHref("run")}${viewQuery(view, { id: run.runId, more: [] })}">${instantHtml(run.startedAt)}</a>`,
    ...runCells(run),
  ]);
  const job = chosen(view, "job");
  const names = [...new Set([...jobs.map((one) => one.job), ...(job === undefined ? [] : [job])])].sort();
  const form = listForm("health", view, [
    names.length > JOBS_LISTED_MAX ? textField("Job", "job", job) : selectField("Job", "job", names, job),
    selectField("Outcome", "outcome", RUN_STATUSES, chosen(view, "outcome")),
  ]);
  const none =
    view.more === undefined
      ? html`<p class="empty">No job has run yet. <code>usage-export export</code> runs one now; <code>usage-export start</code> runs all of them on schedule.</p>`
      : nothingListed("health", view, "runs");
  const body =
    rows.length === 0
      ? html`${view.more === undefined ? undefined : form}${none}`
      : html`${form}${table("The newest first, times in UTC", RUN_COLUMNS, rows)}${pageLinks("health", view, hasMore)}`;
  return [{ id: "runs", title: "Runs", body }];
}

/** A rotation makes no usage requests, and reads no slices. */
export function runCells(run: RecentRun): readonly HtmlValue[] {
  const isExport = run.kind !== "rotation";
  return [
    html`${nameHtml(run.job)} <small>${run.kind}, ${run.trigger}</small>`,
    html`${stateHtml(run.status)} ${foldedText(run.error)}`,
    tookText(run),
    isExport ? roundedText(String(run.requests)) : undefined,
    isExport ? slicesText(run) : undefined,
    isExport ? roundedText(String(run.rowsChanged)) : undefined,
  ];
}

function slicesText({ planned, complete, suspect, failed, undated, stale }: RecentRun): string {
  const others = Object.entries({ undated, failed, suspect, stale });
  return [
    `${roundedText(String(complete))} of ${roundedText(String(planned))}`,
    ...others.flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : [])),
  ].join(", ");
}

function tookText({ startedAt, finishedAt }: RecentRun): string | undefined {
  if (finishedAt === null) return undefined;
  const seconds = Math.round((finishedAt.getTime() - startedAt.getTime()) / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
