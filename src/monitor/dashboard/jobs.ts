// The jobs and what waits in the queue for them, as a section of the dashboard. Pure.

import { type Html, html } from "../../report/html.ts";
import { nameHtml } from "../../report/names.ts";
import type { Section } from "../../report/page.ts";
import { table } from "../../report/table.ts";
import type { WorkerHealth } from "../health-state.ts";
import { queueTotals } from "../queue-totals.ts";
import { instant, longText, stateHtml } from "./cells.ts";
import type { JobLine, Operations } from "./operations.ts";

const COLUMNS = [{ title: "Job" }, { title: "Last run" }, { title: "Next run" }];

const WORKER_COLUMNS = ["Worker", "State", "Last seen", "Started", "Version"].map((title) => ({ title }));
const WORKERS_SHOWN_MAX = 20;

export function jobsSection({ jobs, queue, workers, callsPausedUntil }: Operations): Section {
  const texts = queueTotals(queue).map(({ text }) => text);
  const rows = jobs.map((job) => [jobCell(job), lastRun(job), nextRun(job)]);
  return {
    id: "jobs",
    title: "Jobs",
    body: html`${table("When they ran last and run next, in UTC", COLUMNS, rows)}<p>In the queue: ${texts.join(", ")}.</p>${pauseHtml(callsPausedUntil)}
${workersHtml(workers)}`,
  };
}

function pauseHtml(until: Date | undefined): Html {
  if (!until) return html``;
  return html`
<p>${stateHtml("paused")} Calls to the service wait until ${instant(until)}, as it asked; <code>usage-export resume-calls</code> ends it.</p>`;
}

function workersHtml(workers: readonly WorkerHealth[]): Html {
  if (workers.length === 0) return html`<p class="empty">No worker was ever seen.</p>`;
  const rows = workers
    .slice(0, WORKERS_SHOWN_MAX)
    .map((worker) => [
      html`${nameHtml(worker.host)} <small>pid ${worker.pid}</small>`,
      stateHtml(worker.state),
      instant(worker.lastSeenAt),
      instant(worker.startedAt),
      nameHtml(worker.version),
    ]);
  return table("Workers of the last week, in UTC", WORKER_COLUMNS, rows);
}

function jobCell({ kind, job, schedule, timezone }: JobLine): Html {
  return html`${nameHtml(job)} <small>${kind} at <code>${schedule}</code> ${timezone}</small>`;
}

function lastRun({ lastRun }: JobLine): Html | string {
  if (!lastRun) return "never";
  return html`${stateHtml(lastRun.status)} ${instant(lastRun.startedAt)} <small>${lastRun.trigger}</small>`;
}

function nextRun({ nextRun, paused, overdueSince }: JobLine): Html {
  if (paused) {
    return html`${stateHtml("paused")} since ${instant(paused.at)} <small>by ${nameHtml(paused.by)}</small> ${longText(paused.why)}`;
  }
  const next = nextRun ? instant(nextRun) : html`none`;
  return overdueSince ? html`${stateHtml("overdue")} since ${instant(overdueSince)} <small>next ${next}</small>` : next;
}
