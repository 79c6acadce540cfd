// Which numbers changed after they had been stored: how late, and the largest.

import { chart, type Drawing, type SeriesOption } from "./chart.ts";
import { AXIS_LOOK } from "./chart-look.ts";
import { seriesHtml } from "./coverage-section.ts";
import { instantText } from "./days.ts";
import { change, counted, exact, short } from "./figures.ts";
import { type Html, html } from "./html.ts";
import { metricName } from "./metric-names.ts";
import { groupHtml, nameHtml } from "./names.ts";
import type { Section } from "./page.ts";
import type { Restatement, Restatements } from "./report-data.ts";
import { folded, table } from "./table.ts";

type Lateness = Restatements["byDaysLate"];

export function restatementSection({ byDaysLate, largest }: Restatements): Section {
  const numbers = byDaysLate.reduce((sum, { numbers }) => sum + numbers, 0);
  return {
    id: "restatements",
    title: "Restatements",
    body:
      numbers === 0
        ? html`<p class="empty">No number of this period has changed since it was first stored.</p>`
        : html`<p class="note">${counted(numbers, "number")} of this period changed after being stored, as usage reaches the service late.</p>
${latenessChart(byDaysLate)}${largestTable(largest)}`,
  };
}

function latenessChart(lateness: Lateness): Html {
  const rows = lateness.map(({ daysLate, numbers }) => [String(daysLate), exact(String(numbers))]);
  const columns = [
    { title: "Days late", numeric: true },
    { title: "Numbers changed", numeric: true },
  ];
  return chart(
    "lateness",
    "Numbers that changed, by days after their day",
    { wide: drawing(lateness, 1040), narrow: drawing(lateness, 360) },
    folded(
      "Table: numbers changed by days late",
      table("Numbers that changed, by days after their day", columns, rows),
    ),
  );
}

function drawing(lateness: Lateness, width: number): Drawing {
  const bars: SeriesOption = {
    type: "bar",
    silent: true,
    barMaxWidth: 40,
    itemStyle: { color: "var(--accent)" },
    label: {
      show: lateness.length * 40 < width,
      position: "top",
      color: "var(--ink)",
      formatter: ({ value }) => short(Number(value)),
    },
    data: lateness.map(({ numbers }) => numbers),
  };
  return {
    width,
    height: 220,
    option: {
      grid: { left: 52, right: 12, top: 24, bottom: 48 },
      xAxis: {
        ...AXIS_LOOK,
        type: "category",
        name: "days late",
        nameLocation: "middle",
        nameGap: 30,
        nameTextStyle: { color: "var(--soft)", fontSize: 12 },
        data: lateness.map(({ daysLate }) => String(daysLate)),
      },
      yAxis: { ...AXIS_LOOK, type: "value", minInterval: 1, axisLabel: { ...AXIS_LOOK.axisLabel, formatter: short } },
      series: [bars],
    },
  };
}

function largestTable(largest: readonly Restatement[]): Html | undefined {
  if (largest.length === 0) return undefined;
  const columns = [
    { title: "Day" },
    { title: "Series" },
    { title: "Group" },
    { title: "Metric" },
    { title: "Old", numeric: true },
    { title: "New", numeric: true },
    { title: "Change", numeric: true },
    { title: "Seen" },
  ];
  return html`<h3>The largest changes</h3>
${table("Old and new numbers", columns, largest.map(changeRow))}`;
}

function changeRow(one: Restatement): readonly (Html | string)[] {
  return [
    one.day,
    seriesHtml(one),
    one.grouping === "none" ? "all" : groupHtml(one.grouping, one.group),
    nameHtml(metricName(one.metric)),
    one.old === null ? "none" : exact(one.old),
    one.new === null ? "none" : exact(one.new),
    changeOf(one),
    instantText(one.seenAt),
  ];
}

function changeOf({ old, new: now }: Restatement): string {
  if (old === null) return "new";
  return now === null ? "gone" : change(now, old);
}
