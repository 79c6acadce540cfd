// The newest runs with their errors, as a section of the dashboard. Pure.

import { rounded } from "../../report/figures.ts";
import { type Filling, type Html, html } from "../../report/html.ts";
import { nameHtml } from "../../report/names.ts";
import type { Section } from "../../report/page.ts";
import { folded, table } from "../../report/table.ts";
import { instant, longText, stateHtml } from "./cells.ts";
import type { RunLine } from "./operations.ts";

const COLUMNS = [
  ...[{ title: "Started" }, { title: "Status" }],
  ...["Slices", "Rows changed", "Took"].map((title) => ({ title, numeric: true })),
];

/** The older ones are folded away. */
const SHOWN_MAX = 10;

export function runsSection(runs: readonly RunLine[]): Section {
  const rows = runs.map(cells);
  const older = rows.slice(SHOWN_MAX);
  const body =
    rows.length === 0
      ? html`<p class="empty">No job has run yet.</p>`
      : html`${table("The newest, times in UTC", COLUMNS, rows.slice(0, SHOWN_MAX))}${
          older.length > 0
            ? folded(`${older.length} runs before these`, table("Runs before these", COLUMNS, older))
            : undefined
        }`;
  return { id: "runs", title: "Runs", body };
}

function cells(run: RunLine): readonly Filling[] {
  return [
    startedCell(run),
    html`${stateHtml(run.status)} ${longText(run.error)}`,
    slicesText(run),
    rounded(String(run.rowsChanged)),
    tookText(run),
  ];
}

function startedCell({ startedAt, kind, job, trigger }: RunLine): Html {
  return html`${instant(startedAt)} <small>${kind} ${nameHtml(job)}, ${trigger}</small>`;
}

/** A rotation reads none. */
function slicesText({ kind, planned, complete, suspect, failed, undated, stale }: RunLine): string | undefined {
  if (kind === "rotation") return undefined;
  return [
    `${rounded(String(complete))} of ${rounded(String(planned))}`,
    ...(undated > 0 ? [`${undated} undated`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(suspect > 0 ? [`${suspect} suspect`] : []),
    ...(stale > 0 ? [`${stale} stale`] : []),
  ].join(", ");
}

function tookText({ startedAt, finishedAt }: RunLine): string | undefined {
  if (finishedAt === null) return undefined;
  const seconds = Math.round((finishedAt.getTime() - startedAt.getTime()) / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
