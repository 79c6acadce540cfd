// The section of the dashboard about unusual days. Pure.

import type { HealthState } from "../../facts/health.ts";
import { exactText, metricName, roundedText } from "../../show/format.ts";
import { columns, html, nameHtml, numberColumns, table } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";

const COLUMNS = [
  ...columns("Day", "Project", "Metric"),
  ...numberColumns("Amount", "Usually from", "to"),
  ...columns("Alert"),
];
const ROWS_MAX = 50;

/** None if no day was unusual lately. */
export function anomaliesSection({ anomalies }: HealthState): readonly Section[] {
  const all = anomalies
    .flatMap(({ anomalies: found, ...usage }) => found.map((one) => ({ ...usage, ...one })))
    .sort((a, b) => (a.day < b.day ? 1 : a.day > b.day ? -1 : 0));
  if (all.length === 0) return [];
  const rows = all
    .slice(0, ROWS_MAX)
    .map(({ day, project, filter, unfiltered, metric, amount, low, high, isOpen }) => [
      day,
      unfiltered ? nameHtml(project) : html`${nameHtml(project)} <small>${nameHtml(filter)}</small>`,
      metricName(metric),
      exactText(amount),
      roundedText(low),
      roundedText(high),
      isOpen ? "open" : "over",
    ]);
  const more = all.length - rows.length;
  const rest =
    more > 0 ? html`<p class="note">And ${more} more: see the view <code>bi.usage_anomalies</code>.</p>` : undefined;
  const caption = "Final days of the last 30 that were unusual compared with the weeks before";
  return [{ id: "anomalies", title: "Unusual usage", body: html`${table(caption, COLUMNS, rows)}${rest}` }];
}
