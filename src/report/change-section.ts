// The section on why usage changed: the words, a waterfall from the amount before to the amount now, and its exact table. Pure.

import { counted, exactText, metricUnit } from "./format.ts";
import { columns, folded, groupHtml, groupText, type Html, html, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { ChangeData } from "./report-data.ts";
import {
  type ChangeBreakdown,
  type ChangePart,
  changeSentences,
  groupingWord,
  keyLabel,
  type MetricChange,
  type Sentence,
  type UsageChange,
} from "./usage-change.ts";
import { waterfall } from "./waterfall.ts";

/** Undefined if nothing can be compared. */
export function changeSection({ change, changeProjectsLeftOut }: ChangeData): Section | undefined {
  const [metric] = change.metrics;
  const body =
    changeProjectsLeftOut > 0
      ? leftOutHtml(changeProjectsLeftOut)
      : metric && changeHtml(change, metric, "change-waterfall");
  return body && { id: "what-changed", title: "What changed", body };
}

function leftOutHtml(projects: number): Html {
  return html`<p class="note">Left out here, because comparing the usage of ${counted(projects, "project")} takes seconds: choose a project or run <code>usage-export report</code>, which has it.</p>`;
}

/** The words, and a waterfall by the first grouping. */
export function changeHtml(change: UsageChange, metric: MetricChange, id: string): Html {
  const breakdown = metric.breakdowns.find(({ grouping, daysCompared }) => grouping !== "project" && daysCompared > 0);
  return html`${sentencesHtml(changeSentences(change, metric))}${breakdown && changeChart(id, metric, breakdown)}`;
}

export function sentencesHtml(sentences: readonly Sentence[]): Html {
  const [headline, ...more] = sentences.map(sentenceHtml);
  return html`<p>${headline}</p>
${more.length > 0 ? html`<ul>${more.map((sentence) => html`<li>${sentence}</li>`)}</ul>\n` : undefined}`;
}

function sentenceHtml(sentence: Sentence): Html {
  return html`${sentence.map((piece) => (typeof piece === "string" ? piece : changedHtml(piece.grouping, piece)))}`;
}

/** A key by its comment, with its id when it is pointed at. */
function changedHtml(grouping: string, { group, comment }: Pick<ChangePart, "group" | "comment">): Html {
  return comment ? html`<bdi title="${group ?? ""}">${comment}</bdi>` : groupHtml(grouping, group);
}

function changeChart(id: string, metric: MetricChange, breakdown: ChangeBreakdown): Html {
  const { grouping, parts } = breakdown;
  const title = `Change of ${metricUnit(metric.metric)} by ${groupingWord(grouping)}`;
  const { before, after } = metric;
  const changes = parts.map((part) => ({ name: partName(grouping, part, parts), change: part.change }));
  return waterfall({ id, title, before, after, changes }, changeTable(title, metric, breakdown));
}

function partName(grouping: string, one: ChangePart, parts: readonly ChangePart[]): string {
  const { part, group, groups } = one;
  if (part === "others") return counted(groups, "other");
  if (part !== "group") return part;
  return keyLabel(one, parts) ?? groupText(grouping, group);
}

function changeTable(title: string, metric: MetricChange, { grouping, parts }: ChangeBreakdown): Html {
  const rows = parts.map((part) => [
    partHtml(grouping, part, parts),
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
    `Table: ${title}`,
    table(
      `${title}, exact; the rows add up to the total`,
      [...columns(groupingWord(grouping)), ...numberColumns("Before", "After", "Change"), ...columns("")],
      [...rows, total],
    ),
  );
}

function partHtml(grouping: string, part: ChangePart, parts: readonly ChangePart[]): Html {
  if (part.part !== "group") return html`<i>${partName(grouping, part, parts)}</i>`;
  const name = changedHtml(grouping, { group: part.group, comment: keyLabel(part, parts) });
  return part.project === null ? name : html`${name} in ${nameHtml(part.project)}`;
}
