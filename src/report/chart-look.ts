// How the axes and the legend of every chart look. Pure.

import type { Day } from "../usage/day.ts";
import type { AxisOption } from "./chart.ts";
import { dayLabel } from "./days.ts";

/** In the colours of the page, whichever scheme it is shown in. */
export const AXIS_LOOK = {
  axisLine: { lineStyle: { color: "var(--line)" } },
  axisTick: { show: false },
  axisLabel: { color: "var(--soft)", fontSize: 12 },
  splitLine: { lineStyle: { color: "var(--line)" } },
} as const;

/** How many days from one label to the next, so that at most so many stand on an axis: whole weeks where it can be. */
const LABEL_STEPS = [1, 2, 4, 7, 14, 28, 56];

/** Days below a chart, labelled at even steps back from the newest one. */
export function dayAxis(days: readonly Day[], labelsMax: number): AxisOption {
  const step = LABEL_STEPS.find((step) => days.length / step <= labelsMax) ?? Math.ceil(days.length / labelsMax);
  return {
    ...AXIS_LOOK,
    type: "category",
    data: [...days],
    splitLine: { show: false },
    axisLabel: {
      ...AXIS_LOOK.axisLabel,
      formatter: dayLabel,
      interval: (index: number) => (days.length - 1 - index) % step === 0,
    },
  };
}

export const LEGEND_LOOK = {
  orient: "vertical",
  itemWidth: 12,
  itemHeight: 12,
  itemGap: 8,
  padding: 0,
  selectedMode: false,
  textStyle: { color: "var(--ink)", fontSize: 12 },
} as const;
