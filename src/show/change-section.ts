// Why usage or cost changed, on a page: the words, and a table for each split, whose rows add up to the change. Pure.

import type { Change, ChangePart, ChangeSplit } from "../facts/changes.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import { groupCell, titleOf } from "./answer-chart.ts";
import { changeSentences, type NamedGroup, partText, type Sentence } from "./changes.ts";
import { exactText } from "./format.ts";
import { columns, folded, type Html, html, numberColumns, table } from "./html.ts";

export function changeHtml(change: Change): Html {
  const [headline, ...more] = changeSentences(change).map(sentenceHtml);
  return html`<p>${headline}</p>
${more.length > 0 ? html`<ul>${more.map((sentence) => html`<li>${sentence}</li>`)}</ul>\n` : undefined}${change.splits.map((split) => splitTable(change, split))}`;
}

function sentenceHtml(sentence: Sentence): Html {
  return html`${sentence.map((piece) => (typeof piece === "string" ? piece : nameCell(piece)))}`;
}

function nameCell({ grouping, ...group }: NamedGroup): Html {
  return groupCell(grouping, group, []);
}

function splitTable(change: Change, { grouping, parts }: ChangeSplit): Html | undefined {
  if (parts.length === 0) return undefined;
  const groups = parts.filter(({ part }) => part === "group");
  const hasEffects = parts.some(({ effects }) => effects !== null);
  const effects = ({ effects: of }: Pick<Change, "effects">) =>
    hasEffects ? [of?.volume, of?.price].map((amount) => (amount === undefined ? undefined : exactText(amount))) : [];
  const cells = (part: ChangePart) => [
    part.part === "group" ? groupCell(grouping, part, groups) : html`<i>${partText(part)}</i>`,
    ...[part.before, part.after, part.change].map(exactText),
    ...effects(part),
    part.status ?? undefined,
  ];
  const sums = [change.amountBefore, change.amount, change.change].map((amount) => exactText(amount ?? "–"));
  const total = [html`<b>total</b>`, ...sums, ...effects(change), undefined];
  const title = `Change of ${titleOf(change)} by ${groupingNoun(grouping)}${change.currency === null ? "" : `, in ${change.currency}`}`;
  const titles = [
    ...columns(groupingNoun(grouping)),
    ...numberColumns("Before", "After", "Change", ...(hasEffects ? ["Usage", "Prices"] : [])),
    ...columns(""),
  ];
  return folded(
    `Table: ${title}`,
    table(`${title}, exact; the rows add up to the total`, titles, parts.map(cells), { totals: [total] }),
  );
}
