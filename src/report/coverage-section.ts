// What has been read and what has not: a map of series and days, and what is not complete in words.

import { chart } from "./chart.ts";
import { coverageMap } from "./coverage-map.ts";
import { instantText, windowHtml } from "./days.ts";
import { counted } from "./figures.ts";
import { type Html, html } from "./html.ts";
import { chartLabels, nameHtml, shortened } from "./names.ts";
import type { Section } from "./page.ts";
import type { Coverage, SeriesCoverage, SeriesName, SliceStatus } from "./report-data.ts";
import { folded, table } from "./table.ts";

const LABEL_COLUMNS = { wide: 40, narrow: 22 } as const;
const SEPARATOR = " · ";
const STATUSES: readonly SliceStatus[] = ["complete", "suspect", "failed", "missing"];

export function coverageSection({ coverage }: { readonly coverage: Coverage }): Section {
  return {
    id: "coverage",
    title: "Coverage",
    body: coverage.series.length === 0 ? html`<p class="empty">No series is read yet.</p>` : bodyOf(coverage),
  };
}

function bodyOf(coverage: Coverage): Html {
  const { series, seriesLeftOut, days, undated } = coverage;
  const more =
    seriesLeftOut > 0
      ? html`<p class="note">${counted(seriesLeftOut, "more series", "more series")} not shown: those shown are the ones that lack most.</p>`
      : undefined;
  return html`<p class="note">A series is a project, what its usage is grouped by, and a filter. Days before a series began or not yet due are left blank.</p>
${undatedNote(undated)}${days.length === 0 ? undefined : chart("coverage-map", "Series and days", mapOf(coverage), freshness(series))}${more}${gaps(coverage)}`;
}

const UNDATED_SHOWN_MAX = 20;

function undatedNote(undated: Coverage["undated"]): Html | undefined {
  if (undated.length === 0) return undefined;
  const names = undated.slice(0, UNDATED_SHOWN_MAX).map((one) => html`<li>${seriesHtml(one)}</li>`);
  const more = undated.length - UNDATED_SHOWN_MAX;
  return html`<p class="note">The service's answers about ${counted(undated.length, "series", "series")} carry no date. Nobody knows which days those numbers are of, so they are in no figure of this page; the view <code>bi.usage_snapshot</code> has them:</p>
<ul class="note">${names}${more > 0 ? html`<li>and ${more} more</li>` : undefined}</ul>
`;
}

function mapOf({ days, series }: Coverage): ReturnType<typeof coverageMap> {
  const oneProject = new Set(series.map(({ project }) => project)).size === 1;
  const rows = (columns: number) => {
    const labels = chartLabels(
      series.map((name) => lineOf(name, columns, oneProject)),
      columns,
    );
    return series.map(({ statuses }, i) => ({ label: labels[i] ?? "", statuses }));
  };
  return coverageMap(days, rows(LABEL_COLUMNS.wide), rows(LABEL_COLUMNS.narrow));
}

/** Each part is cut for itself: a long name of a project must not hide the grouping. What all rows share is left out. */
function lineOf({ project, grouping, filter }: SeriesName, columns: number, oneProject: boolean): string {
  const names = [...(oneProject ? [] : [project]), ...(filter === "all" ? [] : [filter])];
  const each = Math.floor((columns - shortGrouping(grouping).length) / Math.max(1, names.length)) - SEPARATOR.length;
  const [first, ...more] = names.map((name) => shortened(name, each));
  const parts = oneProject ? [shortGrouping(grouping), first, ...more] : [first, shortGrouping(grouping), ...more];
  return parts.filter((part) => part !== undefined).join(SEPARATOR);
}

function shortGrouping(grouping: string): string {
  return grouping === "none" ? "total" : grouping;
}

export function seriesHtml({ project, grouping, filter }: SeriesName): Html {
  return html`${nameHtml(project)} · ${shortGrouping(grouping)}${filter === "all" ? undefined : html` · ${nameHtml(filter)}`}`;
}

function freshness(series: readonly SeriesCoverage[]): Html {
  const columns = [
    { title: "Series" },
    { title: "Nothing missing through" },
    { title: "Due through" },
    { title: "Last read" },
    ...STATUSES.map((status) => ({ title: `Days ${status}`, numeric: true })),
  ];
  const rows = series.map((one) => [
    seriesHtml(one),
    one.freshThrough ?? "never",
    one.dueThrough ?? "nothing due",
    one.fetchedAt === null ? "never" : instantText(one.fetchedAt),
    ...STATUSES.map((status) => String(one.statuses.filter((other) => other === status).length)),
  ]);
  return folded("Table: how fresh each series is", table("Freshness by series", columns, rows));
}

function gaps({ gaps, gapsLeftOut }: Coverage): Html | undefined {
  if (gaps.length === 0) return undefined;
  const columns = [{ title: "Days" }, { title: "Series" }, { title: "Status" }, { title: "Why" }];
  const rows = gaps.map((gap) => [
    windowHtml(gap),
    seriesHtml(gap),
    html`<b class="status ${gap.status}">${gap.status}</b>`,
    gap.error === null ? "–" : html`<bdi>${gap.error}</bdi>`,
  ]);
  const more =
    gapsLeftOut > 0
      ? html`<p class="note">${counted(gapsLeftOut, "older stretch", "older stretches")} not shown.</p>`
      : undefined;
  return html`<h3>What is not complete</h3>
${table("Stretches of days, the newest first", columns, rows)}${more}`;
}
