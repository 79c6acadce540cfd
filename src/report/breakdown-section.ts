// Usage by day and group: a stacked chart for each metric, and the numbers behind it.

import type { Day } from "../usage/day.ts";
import { chart } from "./chart.ts";
import { daysHtml } from "./days.ts";
import { counted, drawn, exact, isZero } from "./figures.ts";
import { type Html, html } from "./html.ts";
import { chartLabels, nameHtml } from "./names.ts";
import type { Section } from "./page.ts";
import type { Breakdown, DayAmounts } from "./report-data.ts";
import { stackedDays } from "./stacked-days.ts";
import { folded, table } from "./table.ts";

type Metric = keyof DayAmounts;

const METRICS: readonly { readonly metric: Metric; readonly title: string }[] = [
  { metric: "hours", title: "Hours" },
  { metric: "requests", title: "Requests" },
];
const LABEL_COLUMNS = 26;

export function breakdownSection(breakdown: Breakdown): Section {
  const { grouping, groups } = breakdown;
  return {
    id: `usage-by-${grouping}`,
    title: `Usage by ${grouping}`,
    body: html`${provenance(breakdown)}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : METRICS.map((one) => metricChart(breakdown, one))
    }`,
  };
}

function metricChart(breakdown: Breakdown, { metric, title }: (typeof METRICS)[number]): Html | undefined {
  const layers = layersOf(breakdown);
  // A service that sends no hours has nothing to show there; requests are shown even so.
  if (metric === "hours" && layers.every(({ amounts }) => amounts.hours.every(isZero))) return undefined;
  const { grouping } = breakdown;
  const content = {
    ...breakdown,
    layers: layers.map(({ label, colour, amounts }) => ({ label, colour, values: amounts[metric].map(drawn) })),
  };
  return chart(
    `${metric}-by-${grouping}`,
    `${title} by day and ${grouping}`,
    stackedDays(content),
    numbers(breakdown, metric),
  );
}

type NamedLayer = {
  readonly label: string;
  readonly name: Html;
  readonly colour: string;
  readonly amounts: DayAmounts;
};

function layersOf({ groups, rest }: Breakdown): NamedLayer[] {
  const labels = chartLabels(
    groups.map(({ group }) => group),
    LABEL_COLUMNS,
  );
  const layers = groups.map((amounts, i) => ({
    label: labels[i] ?? "",
    name: nameHtml(amounts.group),
    colour: `var(--series-${i + 1})`,
    amounts,
  }));
  if (rest === undefined) return layers;
  const label = counted(rest.groupCount, "other");
  return [...layers, { label, name: html`<i>${label}</i>`, colour: "var(--rest)", amounts: rest }];
}

function numbers(breakdown: Breakdown, metric: Metric): Html {
  const layers = layersOf(breakdown);
  const columns = [{ title: "Day (UTC)" }, ...layers.map(({ name }) => ({ title: name, numeric: true }))];
  const rows = breakdown.days.map((day, i) => [
    html`<time>${day}</time>${dayFlag(breakdown, day)}`,
    ...layers.map(({ amounts }) => exact(amounts[metric][i] ?? "")),
  ]);
  const caption = `Exact ${metric} by day and ${breakdown.grouping}`;
  return folded(`Table: ${metric} by day and ${breakdown.grouping}`, table(caption, columns, rows));
}

function dayFlag({ incompleteDays, unreadDays }: Breakdown, day: Day): Html | undefined {
  if (incompleteDays.includes(day)) return html` <b class="flag">not complete</b>`;
  return unreadDays.includes(day) ? html` <b class="flag">not read</b>` : undefined;
}

/** Whose usage it is, and which days lack some of it. */
function provenance({ projects, incompleteDays, unreadDays }: Breakdown): Html {
  const low =
    incompleteDays.length > 0
      ? html` <b class="flag">Too low on ${daysHtml(incompleteDays)}</b> (hatched): not all of it could be read.`
      : undefined;
  const unread =
    unreadDays.length > 0
      ? html` Without usage that is not read (dotted) on ${daysHtml(unreadDays)}: before a series began, or not due yet.`
      : undefined;
  return html`<p class="note">Of ${projects.map((project, i) => html`${i > 0 ? ", " : ""}${nameHtml(project)}`)}.${low}${unread}</p>
`;
}
