// The map of coverage: a row a series, a mark a day, whose shape and colour say whether its numbers are there. Pure.

import type { Day } from "../usage/day.ts";
import type { ChartOption, Drawing } from "./chart.ts";
import { AXIS_LOOK, dayAxis, LEGEND_LOOK } from "./chart-look.ts";
import { columnsOf } from "./names.ts";
import type { SliceStatus } from "./report-data.ts";

/** The label is one of chartLabels; the statuses are one a day. */
export type MapRow = { readonly label: string; readonly statuses: readonly (SliceStatus | undefined)[] };

type Mark = { readonly symbol: string; readonly colour: string; readonly height: number };

/** Told apart without colour as well: by form, and complete days by being pale. */
const MARKS: Readonly<Record<SliceStatus, Mark>> = {
  complete: { symbol: "rect", colour: "var(--complete)", height: 1 },
  suspect: { symbol: "diamond", colour: "var(--warn)", height: 1 },
  failed: { symbol: "triangle", colour: "var(--bad)", height: 1 },
  missing: { symbol: "rect", colour: "var(--bad)", height: 0.16 },
};
/** The mark of missing days in the legend, which makes other symbols square. */
const FLAT = "path://M0,0H12V3H0Z";
const STATUSES: readonly SliceStatus[] = ["complete", "suspect", "failed", "missing"];

const ROW = 22;
const AROUND = 64;
/** As wide as a letter may be on average. */
const COLUMN = 6.6;

/** The rows of the narrow map have shorter labels. */
export function coverageMap(
  days: readonly Day[],
  wideRows: readonly MapRow[],
  narrowRows: readonly MapRow[],
): { readonly wide: Drawing; readonly narrow: Drawing } {
  const height = wideRows.length * ROW + AROUND;
  return {
    wide: { width: 1040, height, option: option(days, wideRows, { width: 1040, labelsMax: 12 }) },
    narrow: { width: 360, height, option: option(days, narrowRows, { width: 360, labelsMax: 4 }) },
  };
}

type Frame = { readonly width: number; readonly labelsMax: number };

function option(days: readonly Day[], rows: readonly MapRow[], { width, labelsMax }: Frame): ChartOption {
  const left = Math.max(...rows.map(({ label }) => columnsOf(label))) * COLUMN + 14;
  const right = 14;
  const dayWidth = (width - left - right) / days.length;
  return {
    grid: { left, right, top: 36, bottom: AROUND - 36 },
    legend: { ...LEGEND_LOOK, orient: "horizontal", itemGap: 14, left: 0, top: 0, data: STATUSES.map(legendItem) },
    xAxis: dayAxis(days, labelsMax),
    yAxis: {
      ...AXIS_LOOK,
      type: "category",
      inverse: true,
      data: rows.map((_, i) => String(i)),
      splitLine: { show: false },
      axisLabel: { ...AXIS_LOOK.axisLabel, interval: 0, formatter: (row: string) => rows[Number(row)]?.label ?? "" },
    },
    series: STATUSES.map((status) => ({
      type: "scatter",
      name: status,
      silent: true,
      // All marks of a status are one path; without any mark the library draws none, and fails.
      large: rows.some(({ statuses }) => statuses.includes(status)),
      largeThreshold: 0,
      symbol: MARKS[status].symbol,
      symbolSize: [markWidth(status, dayWidth), (ROW - 5) * MARKS[status].height],
      itemStyle: { color: MARKS[status].colour, opacity: 1 },
      data: rows.flatMap(({ statuses }, row) => statuses.flatMap((one, day) => (one === status ? [[day, row]] : []))),
    })),
  };
}

/** Among many days what is wrong stands out over its neighbours. */
function markWidth(status: SliceStatus, dayWidth: number): number {
  const width = Math.min(dayWidth * 0.86, ROW * 2);
  return status === "complete" ? width : Math.max(width, 7);
}

function legendItem(status: SliceStatus): { readonly name: string; readonly icon: string } {
  return { name: status, icon: status === "missing" ? FLAT : MARKS[status].symbol };
}
