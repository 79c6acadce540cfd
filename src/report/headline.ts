// The figures at the top: all usage of the period, and how it changed. Pure.

import { dayCount } from "../usage/day.ts";
import { windowHtml } from "./days.ts";
import { change, counted, exact, headline } from "./figures.ts";
import { type Html, html } from "./html.ts";
import { metricName } from "./metric-names.ts";
import { nameHtml } from "./names.ts";
import type { MetricTotal, ReportData, Totals } from "./report-data.ts";
import { notCompared, tooLowFlag } from "./shortfall.ts";
import { folded, table } from "./table.ts";

export function headlineFigures(data: ReportData): Html {
  const sent = data.totals.metrics.filter((metric): metric is Sent => metric.amount !== null);
  if (sent.length === 0) return html`<p class="empty">The service sent no figures for this period.</p>`;
  const days = dayCount(data.before);
  const why = notCompared(data.totals, data.totals.sources.length);
  return html`<dl class="figures">${sent.map((metric) => figure(metric, data.totals, why === undefined))}</dl>
<p class="note">${why ?? html`Compared with the ${days === 1 ? "day" : counted(days, "day")} before (${windowHtml(data.before)}).`}</p>
${folded("Exact figures, and where they come from", html`${exactTable(sent, why === undefined)}${sources(data.totals)}`)}`;
}

type Sent = MetricTotal & { readonly amount: string };

function figure({ metric, amount, before }: Sent, totals: Totals, compared: boolean): Html {
  return html`<div><dt>${metricName(metric)}</dt><dd><span class="figure">${headline(amount)}</span>${exactBeside(amount)}
${tooLowFlag(totals)}${compared ? html`<span class="change">${change(amount, before)}</span>` : undefined}</dd></div>
`;
}

/** The exact amount, if the headline rounds it. */
function exactBeside(amount: string): Html | undefined {
  return headline(amount) === exact(amount) ? undefined : html` <span class="exact">${exact(amount)}</span>`;
}

function exactTable(metrics: readonly Sent[], compared: boolean): Html {
  const columns = [
    { title: "Figure" },
    { title: "This period", numeric: true },
    { title: "Period before", numeric: true },
    { title: "Change", numeric: true },
  ];
  return table(
    "Exact figures",
    columns,
    metrics.map(({ metric, amount, before }) => [
      metricName(metric),
      exact(amount),
      before === null ? "none sent" : exact(before),
      compared ? change(amount, before) : "not compared",
    ]),
  );
}

function sources({ sources }: Totals): Html {
  const rows = sources.map(({ project, grouping }) => [
    nameHtml(project),
    grouping === "none" ? "the total" : `the sum by ${grouping}`,
  ]);
  return table("Where the figures come from", [{ title: "Project" }, { title: "Series" }], rows);
}
