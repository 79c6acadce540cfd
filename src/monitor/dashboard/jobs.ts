// The jobs and what waits in the queue for them, as a section of the dashboard. Pure.

import { type Html, html } from "../../report/html.ts";
import { nameHtml } from "../../report/names.ts";
import type { Section } from "../../report/page.ts";
import { table } from "../../report/table.ts";
import { queueTotals } from "../queue-totals.ts";
import { instant, longText, state } from "./cells.ts";
import type { JobLine, Operations } from "./operations.ts";

const COLUMNS = [{ title: "Job" }, { title: "Last run" }, { title: "Next run" }];

export function jobsSection({ jobs, queue }: Operations): Section {
  const texts = queueTotals(queue).map(({ text }) => text);
  const rows = jobs.map((job) => [jobCell(job), lastRun(job), nextRun(job)]);
  return {
    id: "jobs",
    title: "Jobs",
    body: html`${table("When they ran last and run next, in UTC", COLUMNS, rows)}<p>In the queue: ${texts.join(", ")}.</p>`,
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
