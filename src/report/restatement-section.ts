// The section on numbers that changed after they had been stored: what is counted, how late they changed, and the largest
// changes.

import type { Window } from "../usage/days.ts";
import { chart, type Drawing } from "./chart.ts";
import { AXIS_STYLE, type SeriesOption } from "./chart-option.ts";
import { seriesHtml } from "./coverage-section.ts";
import { changeText, compactText, counted, exactText, instantText, metricName, windowHtml } from "./format.ts";
import { columns, folded, groupHtml, type Html, html, joinHtml, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { ReportData, Restatement, Restatements } from "./report-data.ts";

type Lateness = Restatements["byDaysLate"];

export function restatementSection({ restatements, period }: Pick<ReportData, "restatements" | "period">): Section {
  const { byDaysLate, largest } = restatements;
  const changes = byDaysLate.reduce((sum, { numbers }) => sum + numbers, 0);
  const count = changes === 0 ? "No change" : counted(changes, "change");
  const note = html`<p class="note">${count} counted. ${whatIsCounted(restatements, period)}</p>
`;
  return {
    id: "restatements",
    title: "Restatements",
    body: changes === 0 ? note : html`${note}${latenessChart(byDaysLate)}${largestTable(largest)}`,
  };
}

const PROJECTS_NAMED_MAX = 5;

/** The count covers only a part of bi.restatements. No reason is given for a change, because none is known. */
function whatIsCounted({ sources, metrics }: Restatements, period: Window): Html {
  const named = sources.map(
    ({ project, grouping }) => html`${nameHtml(project)} (${grouping === "none" ? "the total" : `by ${grouping}`})`,
  );
  const where =
    sources.length > PROJECTS_NAMED_MAX ? `one series of each of ${sources.length} projects` : joinHtml(named, ", ");
  return html`A change is counted each time a stored number is replaced, from the first reading after the end of its day on: in ${metrics.map(metricName).join(", ")}, for the days ${windowHtml(period)}, in ${where}. Changes in other series or metrics, or before the day was over, are not counted here: the view <code>bi.restatements</code> has every change.`;
}

function latenessChart(lateness: Lateness): Html {
  const rows = lateness.map(({ daysLate, numbers }) => [String(daysLate), exactText(String(numbers))]);
  const title = "Changes, by days after the day of the number";
  return chart(
    "lateness",
    title,
    { wide: latenessDrawing(lateness, 1040), narrow: latenessDrawing(lateness, 360) },
    folded("Table: changes by days late", table(title, numberColumns("Days late", "Changes"), rows)),
  );
}

function latenessDrawing(lateness: Lateness, width: number): Drawing {
  const bars: SeriesOption = {
    type: "bar",
    silent: true,
    barMaxWidth: 40,
    itemStyle: { color: "var(--accent)" },
    label: {
      show: lateness.length * 40 < width,
      position: "top",
      color: "var(--ink)",
      formatter: ({ value }) => compactText(Number(value)),
    },
    data: lateness.map(({ numbers }) => numbers),
  };
  return {
    width,
    height: 220,
    option: {
      grid: { left: 52, right: 12, top: 24, bottom: 48 },
      xAxis: {
        ...AXIS_STYLE,
        type: "category",
        name: "days late",
        nameLocation: "middle",
        nameGap: 30,
        nameTextStyle: { color: "var(--soft)", fontSize: 12 },
        data: lateness.map(({ daysLate }) => String(daysLate)),
      },
      yAxis: {
        ...AXIS_STYLE,
        type: "value",
        minInterval: 1,
        axisLabel: { ...AXIS_STYLE.axisLabel, formatter: compactText },
      },
      series: [bars],
    },
  };
}

function largestTable(largest: readonly Restatement[]): Html | undefined {
  if (largest.length === 0) return undefined;
  const titles = [
    ...columns("Day", "Series", "Group", "Metric"),
    ...numberColumns("Old", "New", "Change"),
    ...columns("Seen"),
  ];
  return html`<h3>The largest changes</h3>
${table("Old and new numbers", titles, largest.map(changeRow))}`;
}

function changeRow(one: Restatement): readonly (Html | string)[] {
  return [
    one.day,
    seriesHtml(one),
    one.grouping === "none" ? "all" : groupHtml(one.grouping, one.group),
    nameHtml(metricName(one.metric)),
    one.old === null ? "none" : exactText(one.old),
    one.new === null ? "none" : exactText(one.new),
    changeOf(one),
    instantText(one.seenAt),
  ];
}

function changeOf({ old, new: now }: Restatement): string {
  if (old === null) return "new";
  return now === null ? "gone" : changeText(now, old);
}
