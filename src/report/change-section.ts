// The section on why usage changed: the words, a waterfall from the amount before to the amount now, and its exact table. Pure.

import { AXIS_STYLE, chart, type Drawing, type SeriesOption } from "./chart.ts";
import { chartNumber, compactText, counted, exactText, headlineText, isZero, metricName } from "./format.ts";
import { chartLabel, columns, folded, groupHtml, type Html, html, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { ReportData } from "./report-data.ts";
import {
  type ChangeBreakdown,
  type ChangePart,
  changeSentences,
  groupingWord,
  type MetricChange,
  type Sentence,
  signedText,
} from "./usage-change.ts";

/** Undefined if nothing can be compared. */
export function changeSection({ change }: ReportData): Section | undefined {
  const [metric] = change.metrics;
  if (!metric) return undefined;
  const [headline, ...more] = changeSentences(change, metric).map(sentenceHtml);
  const breakdown = metric.breakdowns.find(({ grouping, daysCompared }) => grouping !== "project" && daysCompared > 0);
  return {
    id: "what-changed",
    title: "What changed",
    body: html`<p>${headline}</p>
${more.length > 0 ? html`<ul>${more.map((sentence) => html`<li>${sentence}</li>`)}</ul>\n` : undefined}${
  breakdown && waterfall(metric, breakdown)
}`,
  };
}

function sentenceHtml(sentence: Sentence): Html {
  return html`${sentence.map((piece) => (typeof piece === "string" ? piece : groupHtml(piece.grouping, piece.group)))}`;
}

function waterfall(metric: MetricChange, breakdown: ChangeBreakdown): Html {
  const title = `Change of ${metricName(metric.metric).toLowerCase()} by ${groupingWord(breakdown.grouping)}`;
  const steps = stepsOf(metric, breakdown);
  const axisMin = axisMinimum(steps);
  return chart(
    "change-waterfall",
    title,
    {
      wide: drawing(steps, axisMin, { width: 1040, labelColumns: 30, left: 230, ticks: 8 }),
      narrow: drawing(steps, axisMin, { width: 360, labelColumns: 14, left: 118, ticks: 3 }),
    },
    html`${axisMin > 0 ? html`<p class="note">The axis begins at ${compactText(axisMin)}, not at 0.</p>\n` : undefined}${changeTable(title, metric, breakdown)}`,
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
function stepsOf(metric: MetricChange, { grouping, parts }: ChangeBreakdown): readonly Step[] {
  const changed = parts.filter(({ change }) => !isZero(change));
  const falls = (part: ChangePart) => part.change.startsWith("-");
  const ordered = [...changed.filter((part) => !falls(part)), ...changed.filter(falls)];
  const whole = (name: string, amount: string): Step => ({
    ...{ name, from: 0, to: chartNumber(amount), text: headlineText(amount), colour: "var(--rest)" },
  });
  let level = chartNumber(metric.before);
  const steps = ordered.map((part): Step => {
    const from = level;
    level = from + (falls(part) ? -chartNumber(part.change.slice(1)) : chartNumber(part.change));
    const colour = falls(part) ? "var(--series-2)" : "var(--series-1)";
    return { name: partName(grouping, part), from, to: level, text: signedText(part.change), colour };
  });
  // The last bar is drawn from the amount itself: the sum of the rounded steps might differ from it.
  return [whole("before", metric.before), ...steps, whole("after", metric.after)];
}

function partName(grouping: string, { part, group, groups }: ChangePart): string {
  if (part === "others") return counted(groups, "other");
  if (part !== "group") return part;
  if (group === null) return "no value";
  return grouping === "tags" ? group.replaceAll(/^\["|"\]$/g, "").replaceAll('","', ", ") : group;
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

function changeTable(title: string, metric: MetricChange, { grouping, parts }: ChangeBreakdown): Html {
  const rows = parts.map((part) => [
    partHtml(grouping, part),
    exactText(part.before),
    exactText(part.after),
    exactText(part.change),
    part.status ?? undefined,
  ]);
  const total = [
    html`<b>total</b>`,
    exactText(metric.before),
    exactText(metric.after),
    exactText(metric.change),
    undefined,
  ];
  return folded(
    `Table: ${title.toLowerCase()}`,
    table(
      `${title}, exact; the rows add up to the total`,
      [...columns(groupingWord(grouping)), ...numberColumns("Before", "After", "Change"), ...columns("")],
      [...rows, total],
    ),
  );
}

function partHtml(grouping: string, part: ChangePart): Html {
  if (part.part !== "group") return html`<i>${partName(grouping, part)}</i>`;
  const name = groupHtml(grouping, part.group);
  return part.project === null ? name : html`${name} in ${nameHtml(part.project)}`;
}
