// The section on numbers that changed after they had been stored. Pure.

import type { Restatement, Restatements } from "../facts/restatements.ts";
import { seriesHtml } from "./coverage-section.ts";
import { changeText, counted, exactText, instantText, metricName } from "./format.ts";
import { columns, groupHtml, html, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";

const COLUMNS = [
  ...columns("Day", "Series", "Group", "Metric"),
  ...numberColumns("Old", "New", "Change"),
  ...columns("Seen"),
];

export function restatementSection({ count, newest }: Restatements): Section {
  const note = html`<p class="note">${count === 0 ? "No total of these days changed" : counted(count, "change of a total", "changes of totals")} after it had been read; changes before the end of the day are not counted. The view <code>bi.restatements</code> has every change of every series.</p>
`;
  const body =
    count === 0
      ? note
      : html`${note}${table("Old and new numbers, the newest changes first", COLUMNS, newest.map(row))}`;
  return { id: "restatements", title: "Restatements", body };
}

function row(one: Restatement) {
  return [
    one.day,
    seriesHtml(one),
    one.grouping === "none" ? "all" : groupHtml(one.grouping, one.group),
    nameHtml(metricName(one.metric)),
    one.old === null ? "none" : exactText(one.old),
    one.new === null ? "none" : exactText(one.new),
    one.old === null ? "new" : one.new === null ? "gone" : changeText(one.new, one.old),
    instantText(one.seenAt),
  ];
}
