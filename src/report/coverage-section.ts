// What was read and what was not: a map of series and days, and a table of the stretches of days that are not complete. Pure.

import type { Day } from "../usage/days.ts";
import type { SeriesName } from "../usage/series.ts";
import { SLICE_STATUSES, type SliceStatus } from "../usage/slice.ts";
import { chart, type Drawings } from "./chart.ts";
import { AXIS_STYLE, type ChartOption, dayAxis, LEGEND_STYLE } from "./chart-option.ts";
import { counted, instantText, windowHtml } from "./format.ts";
import {
  chartLabels,
  columns,
  displayWidth,
  folded,
  type Html,
  html,
  nameHtml,
  numberColumns,
  table,
  truncatedName,
} from "./html.ts";
import type { Section } from "./page.ts";
import type { Coverage, SeriesCoverage } from "./report-data.ts";

const LABEL_COLUMNS = { wide: 40, narrow: 22 } as const;
const SEPARATOR = " · ";

export function coverageSection({ coverage }: { readonly coverage: Coverage }): Section {
  return {
    id: "coverage",
    title: "Coverage",
    body: coverage.series.length === 0 ? html`<p class="empty">No series is read yet.</p>` : bodyOf(coverage),
  };
}

function bodyOf(coverage: Coverage): Html {
  const { series, seriesCount, days, undated } = coverage;
  const seriesLeftOut = seriesCount - series.length;
  const more =
    seriesLeftOut > 0
      ? html`<p class="note">${counted(seriesLeftOut, "more series", "more series")} not shown: those shown lack the most days.</p>`
      : undefined;
  return html`<p class="note">A series is a project, what its usage is grouped by, and a filter. Days before a series began or not yet due are left blank.</p>
${undatedNote(undated)}${days.length === 0 ? undefined : chart("coverage-map", "Series and days", mapDrawings(coverage), freshnessTable(series))}${more}${gapsTable(coverage)}`;
}

const UNDATED_SHOWN_MAX = 20;

function undatedNote(undated: Coverage["undated"]): Html | undefined {
  if (undated.length === 0) return undefined;
  const names = undated.slice(0, UNDATED_SHOWN_MAX).map((one) => html`<li>${seriesHtml(one)}</li>`);
  const more = undated.length - UNDATED_SHOWN_MAX;
  return html`<p class="note">The service's answers about ${counted(undated.length, "series", "series")} carry no date. It is not known which days those numbers are of, so no figure on this page contains them; the view <code>bi.usage_snapshot</code> has them:</p>
<ul class="note">${names}${more > 0 ? html`<li>and ${more} more</li>` : undefined}</ul>
`;
}

function mapDrawings({ days, series }: Coverage): Drawings {
  const oneProject = new Set(series.map(({ project }) => project)).size === 1;
  const rows = (columns: number) => {
    const labels = chartLabels(
      series.map((name) => rowLabel(name, columns, oneProject)),
      columns,
    );
    return series.map(({ statuses }, i) => ({ label: labels[i] ?? "", statuses }));
  };
  return coverageMap(days, rows(LABEL_COLUMNS.wide), rows(LABEL_COLUMNS.narrow));
}

/** Each part is cut separately, so that a long project name does not hide the grouping. The project is left out if all rows share it. */
function rowLabel({ project, grouping, filter }: SeriesName, columns: number, oneProject: boolean): string {
  const names = [...(oneProject ? [] : [project]), ...(filter === "all" ? [] : [filter])];
  const each = Math.floor((columns - shortGrouping(grouping).length) / Math.max(1, names.length)) - SEPARATOR.length;
  const parts = names.map((name) => truncatedName(name, each));
  return parts.toSpliced(oneProject ? 0 : 1, 0, shortGrouping(grouping)).join(SEPARATOR);
}

function shortGrouping(grouping: string): string {
  return grouping === "none" ? "total" : grouping;
}

export function seriesHtml({ project, source = "usage", grouping, filter }: SeriesName): Html {
  const of = source === "usage" ? "" : `${source} `;
  return html`${nameHtml(project)} · ${of}${shortGrouping(grouping)}${filter === "all" ? undefined : html` · ${nameHtml(filter)}`}`;
}

function freshnessTable(series: readonly SeriesCoverage[]): Html {
  const titles = [
    ...columns("Series", "Nothing missing through", "Due through", "Last read"),
    ...numberColumns(...SLICE_STATUSES.map((status) => `Days ${status}`)),
  ];
  const rows = series.map((one) => [
    seriesHtml(one),
    one.freshThrough ?? "never",
    one.dueThrough ?? "nothing due",
    one.fetchedAt === null ? "never" : instantText(one.fetchedAt),
    ...SLICE_STATUSES.map((status) => String(one.statuses.filter((other) => other === status).length)),
  ]);
  return folded("Table: how fresh each series is", table("Freshness by series", titles, rows));
}

function gapsTable({ gaps, gapsLeftOut }: Coverage): Html | undefined {
  if (gaps.length === 0) return undefined;
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
${table("Stretches of days, the newest first", columns("Days", "Series", "Status", "Why"), rows)}${more}`;
}

/** A row of the coverage map. The label is from chartLabels; there is one status a day. */
export type MapRow = { readonly label: string; readonly statuses: readonly (SliceStatus | undefined)[] };

type StatusMark = { readonly symbol: string; readonly colour: string; readonly height: number };

/** The marks differ without colour as well: by their shape, and complete days are pale. */
const STATUS_MARKS: Readonly<Record<SliceStatus, StatusMark>> = {
  complete: { symbol: "rect", colour: "var(--complete)", height: 1 },
  suspect: { symbol: "diamond", colour: "var(--warn)", height: 1 },
  failed: { symbol: "triangle", colour: "var(--bad)", height: 1 },
  missing: { symbol: "rect", colour: "var(--bad)", height: 0.16 },
};
/** Marks missing days in the legend, which would draw a flat symbol as a square. */
const FLAT_ICON = "path://M0,0H12V3H0Z";

const MAP_ROW_PX = 22;
const MAP_MARGIN_PX = 64;
/** The average width of a letter. */
const LABEL_COLUMN_PX = 6.6;

/** The rows of the narrow map have shorter labels. */
export function coverageMap(
  days: readonly Day[],
  wideRows: readonly MapRow[],
  narrowRows: readonly MapRow[],
): Drawings {
  const height = wideRows.length * MAP_ROW_PX + MAP_MARGIN_PX;
  return {
    wide: { width: 1040, height, option: mapOption(days, wideRows, { width: 1040, labelsMax: 12 }) },
    narrow: { width: 360, height, option: mapOption(days, narrowRows, { width: 360, labelsMax: 4 }) },
  };
}

type Frame = { readonly width: number; readonly labelsMax: number };

function mapOption(days: readonly Day[], rows: readonly MapRow[], { width, labelsMax }: Frame): ChartOption {
  const left = Math.max(...rows.map(({ label }) => displayWidth(label))) * LABEL_COLUMN_PX + 14;
  const right = 14;
  const dayWidth = (width - left - right) / days.length;
  return {
    grid: { left, right, top: 36, bottom: MAP_MARGIN_PX - 36 },
    legend: {
      ...LEGEND_STYLE,
      orient: "horizontal",
      itemGap: 14,
      left: 0,
      top: 0,
      data: SLICE_STATUSES.map(legendItem),
    },
    xAxis: dayAxis(days, labelsMax),
    yAxis: {
      ...AXIS_STYLE,
      type: "category",
      inverse: true,
      data: rows.map((_, i) => String(i)),
      splitLine: { show: false },
      axisLabel: { ...AXIS_STYLE.axisLabel, interval: 0, formatter: (row: string) => rows[Number(row)]?.label ?? "" },
    },
    series: SLICE_STATUSES.map((status) => ({
      type: "scatter",
      name: status,
      silent: true,
      // "large" draws all marks of a status as one path. Without any mark the library fails to draw that path.
      large: rows.some(({ statuses }) => statuses.includes(status)),
      largeThreshold: 0,
      symbol: STATUS_MARKS[status].symbol,
      symbolSize: [markWidth(status, dayWidth), (MAP_ROW_PX - 5) * STATUS_MARKS[status].height],
      itemStyle: { color: STATUS_MARKS[status].colour, opacity: 1 },
      data: rows.flatMap(({ statuses }, row) => statuses.flatMap((one, day) => (one === status ? [[day, row]] : []))),
    })),
  };
}

/** With many days, the mark of a day that is not complete is wider than the day, so that it stands out. */
function markWidth(status: SliceStatus, dayWidth: number): number {
  const width = Math.min(dayWidth * 0.86, MAP_ROW_PX * 2);
  return status === "complete" ? width : Math.max(width, 7);
}

function legendItem(status: SliceStatus): { readonly name: string; readonly icon: string } {
  return { name: status, icon: status === "missing" ? FLAT_ICON : STATUS_MARKS[status].symbol };
}
