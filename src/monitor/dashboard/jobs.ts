// The jobs and what waits in the queue for them, as a section of the dashboard. Pure.

import { type Html, html } from "../../report/html.ts";
import { nameHtml } from "../../report/names.ts";
import type { Section } from "../../report/page.ts";
import { table } from "../../report/table.ts";
import { instant, longText, state } from "./cells.ts";
import type { JobLine, Operations, QueueLine } from "./operations.ts";

const COLUMNS = [{ title: "Job" }, { title: "Last run" }, { title: "Next run" }];

export function jobsSection({ jobs, queue }: Operations): Section {
  const rows = jobs.map((job) => [jobCell(job), lastRun(job), nextRun(job)]);
  return {
    id: "jobs",
    title: "Jobs",
    body: html`${table("When they ran last and run next, in UTC", COLUMNS, rows)}<p>${queueText(queue)}</p>`,
  };
}

function jobCell({ kind, job, schedule, timezone }: JobLine): Html {
  return html`${nameHtml(job)} <small>${kind} at <code>${schedule}</code> ${timezone}</small>`;
}

function lastRun({ lastRun }: JobLine): Html | string {
  if (!lastRun) return "never";
  return html`${state(lastRun.status)} ${instant(lastRun.startedAt)} <small>${lastRun.trigger}</small>`;
}

function nextRun({ nextRun, paused, overdueSince }: JobLine): Html {
  if (paused) {
    return html`${state("paused")} since ${instant(paused.at)} <small>by ${nameHtml(paused.by)}</small> ${longText(paused.why)}`;
  }
  const next = nextRun ? instant(nextRun) : html`none`;
  return overdueSince ? html`${state("overdue")} since ${instant(overdueSince)} <small>next ${next}</small>` : next;
}

const STATES = {
  waiting: "waiting",
  retrying: "to be tried again",
  active: "in hand",
  dead: "given up in the last day",
} as const;

/** What was given up is moved to a queue of its own, where it would count a second time. */
function queueText(queue: readonly QueueLine[]): string {
  const counts = Object.entries(STATES).map(([state, words]) => {
    const works = queue.filter((one) => one.state === state && one.queue !== "usage_request_dead");
    return `${works.reduce((sum, { jobs }) => sum + jobs, 0)} ${words}`;
  });
  return `In the queue: ${counts.join(", ")}.`;
}
