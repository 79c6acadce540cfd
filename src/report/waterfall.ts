// A waterfall chart: from the amount before, change by change, to the amount after. Pure.

import { chart, type Drawing } from "./chart.ts";
import { AXIS_STYLE, type SeriesOption } from "./chart-option.ts";
import { chartNumber, compactText, headlineText, isZero } from "./format.ts";
import { chartLabel, type Html, html } from "./html.ts";
import { signedText } from "./usage-change.ts";

/** The changes must add up to the difference of the two amounts. */
export type Waterfall = {
  readonly id: string;
  readonly title: string;
  readonly before: string;
  readonly after: string;
  readonly changes: readonly { readonly name: string; readonly change: string }[];
};

/** `below` is the table with the exact amounts. */
export function waterfall(fall: Waterfall, below: Html): Html {
  const steps = stepsOf(fall);
  const axisMin = axisMinimum(steps);
  return chart(
    fall.id,
    fall.title,
    {
      wide: drawing(steps, axisMin, { width: 1040, labelColumns: 30, left: 230, ticks: 8 }),
      narrow: drawing(steps, axisMin, { width: 360, labelColumns: 14, left: 118, ticks: 3 }),
    },
    html`${axisMin > 0 ? html`<p class="note">The axis begins at ${compactText(axisMin)}, not at 0.</p>\n` : undefined}${below}`,
  );
}

/** A bar from one level to another. */
type Step = {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly text: string;
  readonly colour: string;
};

/** Rises come before falls, so that the level never is below 0. A part without a change is not drawn. */
function stepsOf({ before, after, changes }: Waterfall): readonly Step[] {
  const changed = changes.filter(({ change }) => !isZero(change));
  const falls = ({ change }: { readonly change: string }) => change.startsWith("-");
  const ordered = [...changed.filter((one) => !falls(one)), ...changed.filter(falls)];
  const whole = (name: string, amount: string): Step => ({
    ...{ name, from: 0, to: chartNumber(amount), text: headlineText(amount), colour: "var(--rest)" },
  });
  let level = chartNumber(before);
  const steps = ordered.map((one): Step => {
    const from = level;
    level = from + (falls(one) ? -chartNumber(one.change.slice(1)) : chartNumber(one.change));
    const colour = falls(one) ? "var(--series-2)" : "var(--series-1)";
    return { name: one.name, from, to: level, text: signedText(one.change), colour };
  });
  // The last bar is drawn from the amount itself: the sum of the rounded steps might differ from it.
  return [whole("before", before), ...steps, whole("after", after)];
}

/** 0, unless the changes would be too small to see beside the amounts. */
function axisMinimum(steps: readonly Step[]): number {
  const levels = steps.flatMap(({ from, to }, i) => (i === 0 || i === steps.length - 1 ? [to] : [from, to]));
  const [lowest, highest] = [Math.min(...levels), Math.max(...levels)];
  const range = highest - lowest;
  if (range <= 0 || lowest <= 2 * range) return 0;
  const step = 10 ** Math.floor(Math.log10(range));
  return Math.max(0, Math.floor((lowest - range / 2) / step) * step);
}

const ROW_PX = 28;

type Layout = { readonly width: number; readonly labelColumns: number; readonly left: number; readonly ticks: number };

/** The library gets numbered keys as names: it interprets names as patterns, and confuses equal names. */
function drawing(steps: readonly Step[], axisMin: number, { width, labelColumns, left, ticks }: Layout): Drawing {
  const labels = steps.map(({ name }) => chartLabel(name, labelColumns));
  const bar = { type: "bar", stack: "level", silent: true, barCategoryGap: "30%" } as const;
  const lowEnds: SeriesOption = {
    ...bar,
    itemStyle: { color: "transparent" },
    data: steps.map(({ from, to }) => Math.max(axisMin, Math.min(from, to))),
  };
  const lengths: SeriesOption = {
    ...bar,
    label: {
      show: true,
      position: "right",
      color: "var(--ink)",
      fontSize: 12,
      formatter: ({ dataIndex }) => steps[dataIndex]?.text ?? "",
    },
    data: steps.map(({ from, to, colour }) => ({
      value: Math.max(from, to) - Math.max(axisMin, Math.min(from, to)),
      itemStyle: { color: colour },
    })),
  };
  return {
    width,
    height: steps.length * ROW_PX + 44,
    option: {
      grid: { left, right: 76, top: 8, bottom: 32 },
      xAxis: {
        ...AXIS_STYLE,
        type: "value",
        min: axisMin,
        splitNumber: ticks,
        axisLabel: { ...AXIS_STYLE.axisLabel, formatter: compactText, hideOverlap: true },
      },
      yAxis: {
        ...AXIS_STYLE,
        type: "category",
        inverse: true,
        splitLine: { show: false },
        data: steps.map((_, i) => `s${i}`),
        axisLabel: {
          ...AXIS_STYLE.axisLabel,
          interval: 0,
          formatter: (key: string) => labels[Number(key.slice(1))] ?? "",
        },
      },
      series: [lowEnds, lengths],
    },
  };
}
