// The sections of the dashboard: verdict, jobs, runs, gaps and keys. Pure.

import { loudAlerts, renderSnooze } from "../../health/alert.ts";
import { alertsOf } from "../../health/alerts.ts";
import {
  type GapGroup,
  groupGaps,
  type HealthState,
  type JobHealth,
  type Operations,
  queueTotals,
  type RotationKeys,
  type WorkerHealth,
} from "../../health/state.ts";
import { usageAlertsOf } from "../../health/usage-alerts.ts";
import { seriesHtml } from "../../report/coverage-section.ts";
import { counted, instantText, roundedText, windowText } from "../../report/format.ts";
import {
  columns,
  folded,
  type Html,
  type HtmlValue,
  html,
  nameHtml,
  numberColumns,
  table,
  truncatedName,
} from "../../report/html.ts";
import type { Section } from "../../report/page.ts";
import type { Readiness } from "../routes.ts";

type RecentRun = Operations["runs"][number];
type KeyStatus = RotationKeys["keys"][number];

export type DashboardAlert = { readonly text: string; readonly section?: string };

/** First why the worker that shows the page can't work, then the alerts for which `status` would end with 1. */
export function dashboardAlerts(health: HealthState, readiness: Readiness): readonly DashboardAlert[] {
  return [
    ...readiness.reasons.map((reason) => ({ text: `this worker can't work now: ${reason}` })),
    ...loudAlerts(alertsOf(health)),
  ];
}

/** `alerts` are the dashboardAlerts. Below them the alerts about the usage, and those that a person has snoozed. */
export function verdictHtml(alerts: readonly DashboardAlert[], health: HealthState): Html {
  const ofUsage = usageAlertsOf(health);
  const snoozed = [...alertsOf(health), ...ofUsage].flatMap(({ text, section, snooze }) =>
    snooze ? [{ text: `${text} (${renderSnooze(snooze)})`, section }] : [],
  );
  const verdict =
    alerts.length === 0
      ? html`<div class="notice good"><strong>Nothing that is due is missing.</strong> ${counted(health.slices.complete, "slice")} complete; no job waits for a worker, and no key for a person.</div>
`
      : noticeHtml("bad", `${counted(alerts.length, "thing")} to look at`, alerts);
  const usage = loudAlerts(ofUsage);
  return html`${verdict}${usage.length > 0 ? noticeHtml("bad", "About the usage", usage) : undefined}${
    snoozed.length > 0 ? noticeHtml("", "Snoozed", snoozed) : undefined
  }`;
}

function noticeHtml(kind: "bad" | "", title: string, alerts: readonly DashboardAlert[]): Html {
  const items = alerts.map(({ text, section }) =>
    section === undefined ? html`<li>${text}</li>` : html`<li><a href="#${section}">${text}</a></li>`,
  );
  return html`<div class="notice ${kind}"><strong>${title}</strong>
<ul>${items}</ul></div>
`;
}

// Jobs, the queue and workers.

const WORKERS_SHOWN_MAX = 20;

export function jobsSection({ jobs, queue, workers, callsPausedUntil }: HealthState): Section {
  const texts = queueTotals(queue).map(({ text }) => text);
  const rows = jobs.map((job) => [jobCell(job), lastRunCell(job), nextRunCell(job)]);
  return {
    id: "jobs",
    title: "Jobs",
    body: html`${table("When they ran last and run next, in UTC", columns("Job", "Last run", "Next run"), rows)}<p>In the queue: ${texts.join(", ")}.</p>${callsPausedHtml(callsPausedUntil)}
${workersHtml(workers)}`,
  };
}

function callsPausedHtml(until: Date | undefined): Html {
  if (!until) return html``;
  return html`
<p>${stateHtml("paused")} Calls to the service are paused until ${instantHtml(until)}, as the service asked; <code>usage-export resume-calls</code> ends the pause.</p>`;
}

function workersHtml(workers: readonly WorkerHealth[]): Html {
  if (workers.length === 0) return html`<p class="empty">No worker was ever seen.</p>`;
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
  return table("Workers of the last week, in UTC", titles, rows);
}

function jobCell({ kind, job, schedule, timezone }: JobHealth): Html {
  return html`${nameHtml(job)} <small>${kind} at <code>${schedule}</code> ${timezone}</small>`;
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

// The newest runs with their errors.

const RUN_COLUMNS = [...columns("Started", "Status"), ...numberColumns("Slices", "Rows changed", "Took")];

/** Older runs are folded. */
const RUNS_UNFOLDED_MAX = 10;

export function runsSection(runs: readonly RecentRun[]): Section {
  const rows = runs.map(runCells);
  const older = rows.slice(RUNS_UNFOLDED_MAX);
  const body =
    rows.length === 0
      ? html`<p class="empty">No job has run yet.</p>`
      : html`${table("The newest, times in UTC", RUN_COLUMNS, rows.slice(0, RUNS_UNFOLDED_MAX))}${
          older.length > 0
            ? folded(`${older.length} runs before these`, table("Runs before these", RUN_COLUMNS, older))
            : undefined
        }`;
  return { id: "runs", title: "Runs", body };
}

function runCells(run: RecentRun): readonly HtmlValue[] {
  return [
    startedCell(run),
    html`${stateHtml(run.status)} ${foldedText(run.error)}`,
    slicesText(run),
    roundedText(String(run.rowsChanged)),
    tookText(run),
  ];
}

function startedCell({ startedAt, kind, job, trigger }: RecentRun): Html {
  return html`${instantHtml(startedAt)} <small>${kind} ${nameHtml(job)}, ${trigger}</small>`;
}

/** A rotation reads no slices. */
function slicesText({ kind, planned, complete, suspect, failed, undated, stale }: RecentRun): string | undefined {
  if (kind === "rotation") return undefined;
  return [
    `${roundedText(String(complete))} of ${roundedText(String(planned))}`,
    ...(undated > 0 ? [`${undated} undated`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(suspect > 0 ? [`${suspect} suspect`] : []),
    ...(stale > 0 ? [`${stale} stale`] : []),
  ].join(", ");
}

function tookText({ startedAt, finishedAt }: RecentRun): string | undefined {
  if (finishedAt === null) return undefined;
  const seconds = Math.round((finishedAt.getTime() - startedAt.getTime()) / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

// The gaps of all time.

const GAPS_SHOWN_MAX = 50;
const SERIES_SHOWN_MAX = 100;

export function gapsSection({ slices, gaps }: HealthState): Section {
  const counts = Object.entries(slices).map(([status, count]) => `${roundedText(String(count))} ${status}`);
  const note = html`<p class="note">Of all slices, which are a series on a day each: ${counts.join(", ")}.</p>
`;
  return { id: "gaps", title: "Gaps", body: html`${note}${gapsTable(gaps)}` };
}

function gapsTable(gaps: HealthState["gaps"]): Html {
  if (gaps.length === 0) return html`<p class="empty">No day that is due is missing or failed.</p>`;
  const groups = groupGaps(gaps);
  const more = groups.length - GAPS_SHOWN_MAX;
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

// The keys of each rotation. No secret is read for this section.

const KEY_COLUMNS = [
  ...[...columns("Key", "State"), ...numberColumns("Age")],
  ...columns("Last seen in use", "Due for removal", "Comment", "Note"),
];

export function keysSection(rotations: readonly RotationKeys[]): Section {
  const body =
    rotations.length === 0
      ? html`<p class="empty">No rotation is configured.</p>`
      : html`${rotations.map(rotationHtml)}`;
  return { id: "keys", title: "API keys", body };
}

function rotationHtml({ rotation, maxAgeDays, warnings, keys }: RotationKeys): Html {
  const retired = maxAgeDays === null ? " (not configured any more)" : "";
  const alerts = warnings.map((warning) => html`<p class="notice bad">${warning}</p>\n`);
  const rows = keys.map((key) => keyCells(key, maxAgeDays));
  const shown =
    rows.length === 0
      ? html`<p class="empty">It has created no key yet.</p>\n`
      : table(`Keys of ${rotation}, times in UTC`, KEY_COLUMNS, rows);
  return html`<h3>${nameHtml(rotation)}${retired}</h3>
${alerts}${shown}`;
}

function keyCells(key: KeyStatus, maxAgeDays: number | null): readonly HtmlValue[] {
  const { apiKeyId, intentId, state, ageDays, lastSeenInUse, dueForRemovalAt, comment, note } = key;
  // Only the key in use is replaced when it reaches its maximum age.
  const limitDays = state === "active" ? maxAgeDays : null;
  return [
    apiKeyId === null ? `not known; its comment holds ${intentId}` : nameHtml(apiKeyId),
    stateHtml(state),
    ageHtml(ageDays, limitDays),
    lastSeenInUse ?? "unknown",
    dueForRemovalAt ? html`since ${instantHtml(dueForRemovalAt)}` : "no",
    foldedText(comment),
    foldedText(note),
  ];
}

function ageHtml(ageDays: number, limitDays: number | null): HtmlValue {
  if (limitDays === null) return `${ageDays} days`;
  const text = `${ageDays} of ${limitDays} days`;
  return ageDays > limitDays ? html`<span class="state warn">${text}</span>` : text;
}

// Parts of the tables.

const SUMMARY_COLUMNS = 120;

/** Without a zone: the captions say that all times are in UTC. */
function instantHtml(moment: Date): Html {
  return html`<time datetime="${moment.toISOString()}">${instantText(moment).replace(" UTC", "")}</time>`;
}

/** The colour of a state, which is shown by its word too. */
const STATE_CLASSES: Readonly<Record<string, "good" | "warn" | "bad">> = {
  ...{ ok: "good", complete: "good", active: "good", live: "good" },
  ...{ suspect: "warn", skipped: "warn", stopped: "warn", paused: "warn", draining: "warn", silent: "warn" },
  ...{ failed: "bad", missing: "bad", interrupted: "bad", orphan: "bad", overdue: "bad" },
};

function stateHtml(name: string): Html {
  return html`<span class="state ${STATE_CLASSES[name]}">${name}</span>`;
}

/** The whole text, folded if it is long. */
function foldedText(text: string | null): Html | undefined {
  if (text === null || text === "") return undefined;
  const start = truncatedName(text, SUMMARY_COLUMNS);
  if (start === text) return html`<bdi>${text}</bdi>`;
  return html`<details><summary><bdi>${start}</bdi></summary><bdi>${text}</bdi></details>`;
}
