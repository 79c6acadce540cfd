// HTML in which a text can't become markup: every value is escaped unless it is HTML already. Pure.

import { escapeHtml, toPrintableLine, truncate } from "../text.ts";
import { groupingNoun, memberNoun } from "../usage/dimensions.ts";

/** Safe to insert into the content of other HTML. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** `false` and undefined are shown as nothing. */
export type HtmlValue = Html | string | number | readonly HtmlValue[] | false | undefined;

/** Values may stand only in content and in attributes with double quotes: elsewhere, as in `<style>`, escaping differs. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(parts.map((part, i) => `${part}${renderValue(values[i])}`).join(""));
}

/** Marks text as HTML. Nothing is escaped, so it must not come from outside. */
export function trustedHtml(text: string): Html {
  return new Html(text);
}

function renderValue(value: HtmlValue): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.toString();
  if (typeof value === "object") return value.map(renderValue).join("");
  // HTML can't contain control characters, except tabs and line feeds, nor halves of surrogate pairs: a browser would drop or change them.
  return escapeHtml(String(value)).replaceAll(/[^\P{Cc}\t\n]|\p{Cs}/gu, "\ufffd");
}

/** The title of a column; `numbers` if the column has numbers, which are aligned. */
export type TableColumn = HtmlValue | { readonly numbers: HtmlValue };

export type TableRow = readonly HtmlValue[];

/** On a narrow screen each row is a block, in which each value follows its column's title. */
export function stackedTable(caption: string, columns: readonly TableColumn[], rows: readonly TableRow[]): Html {
  return table(caption, columns, rows, [], true);
}

/** The first cell of each row is its heading; `totals` are the last rows. A wide table scrolls in a box of its own. */
export function table(
  caption: string,
  columns: readonly TableColumn[],
  rows: readonly TableRow[],
  totals: readonly TableRow[] = [],
  isStacked = false,
): Html {
  const classOf = (column: TableColumn) => hasNumbers(column) && html` class="n"`;
  const cellHtml = (cell: HtmlValue, column: TableColumn) =>
    html`<td${classOf(column)}${isStacked && html` data-title="${titleOf(column)}"`}>${cell}</td>`;
  const rowHtml = ([heading, ...cells]: TableRow) =>
    html`<tr><th scope="row">${heading}</th>${cells.map((cell, i) => cellHtml(cell, columns[i + 1]))}</tr>\n`;
  return html`<div class="scroll${isStacked && " stacked"}" role="group" aria-label="${caption}" tabindex="0"><table>
<caption>${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col"${classOf(column)}>${titleOf(column)}</th>`)}</tr></thead>
<tbody>
${rows.map(rowHtml)}</tbody>${totals.length > 0 && html`<tfoot>${totals.map(rowHtml)}</tfoot>`}
</table></div>\n`;
}

function titleOf(column: TableColumn): HtmlValue {
  return hasNumbers(column) ? column.numbers : column;
}

function hasNumbers(column: TableColumn): column is { readonly numbers: HtmlValue } {
  return typeof column === "object" && "numbers" in column;
}

/** Shows one table row as a box for each cell, so that a narrow screen need not scroll. Cells without a value are left out. */
export function boxes(columns: readonly TableColumn[], cells: TableRow): Html {
  const shown = columns.flatMap((column, i) =>
    cells[i] ? [html`<div><dt>${titleOf(column)}</dt><dd>${cells[i]}</dd></div>\n`] : [],
  );
  return html`<dl class="figures">${shown}</dl>\n`;
}

/** Shows no zone: the footer of every page says that all times are in UTC. */
export function instantHtml(moment: Date): Html {
  const text = moment.toISOString();
  return html`<time datetime="${text}">${text.slice(0, 16).replace("T", " ")}</time>`;
}

/** The states of jobs, runs and keys that are shown in a colour, by its class. */
const STATES_BY_CLASS = {
  good: ["ok", "active"],
  warn: ["stopped", "paused", "draining"],
  bad: ["failed", "interrupted", "orphan", "overdue"],
};

export function stateHtml(name: string): Html {
  const colour = Object.entries(STATES_BY_CLASS).find(([, states]) => states.includes(name))?.[0];
  return html`<span class="state ${colour}">${name}</span>`;
}

const SUMMARY_CHARACTERS = 120;

export function foldedText(text: string | null): Html | undefined {
  if (!text) return undefined;
  const start = truncate(toPrintableLine(text), SUMMARY_CHARACTERS);
  if (start === text) return html`<bdi>${text}</bdi>`;
  return html`<details><summary><bdi>${start}</bdi></summary><bdi>${text}</bdi></details>`;
}

/** Closed on a screen, open on paper. */
export function folded(summary: string, content: Html): Html {
  return html`<details>
<summary>${summary}</summary>
${content}</details>\n`;
}

export function optionHtml(value: string, title: string, isChosen: boolean): Html {
  return html`<option value="${value}"${isChosen && html` selected`}>${title}</option>`;
}

type Choice = readonly [text: string, href: string, isCurrent: boolean];

export function choiceList(label: string, choices: readonly Choice[]): Html {
  const items = choices.map(
    ([text, href, isCurrent]) => html`<li><a href="${href}"${isCurrent && html` aria-current="true"`}>${text}</a></li>`,
  );
  return html`<ul class="choices" aria-label="${label}">${items}</ul>\n`;
}

const NO_VALUE = "no value";
/** The name is isolated: a name written from right to left would reverse the text around it. */
export function nameHtml(name: string | null): Html {
  if (name === null) return html`<i>${NO_VALUE}</i>`;
  return name.trim() === "" ? html`<i>blank name</i>` : html`<bdi>${name}</bdi>`;
}

/** Shows the value of a group. If it is a set, each of its members is in a box of its own. */
export function groupHtml(grouping: string, group: string | null): Html {
  const members = setMembers(grouping, group);
  if (members === undefined) return nameHtml(group);
  if (members.length === 0) return html`<i>no ${groupingNoun(grouping)}</i>`;
  return html`<span class="chips">${members.map((member) => html`<span>${nameHtml(member)}</span> `)}</span>`;
}

/** Like groupHtml, for places that show only text. */
export function groupText(grouping: string, group: string | null): string {
  const members = setMembers(grouping, group);
  if (members === undefined) return group ?? NO_VALUE;
  return members.length === 0 ? `no ${groupingNoun(grouping)}` : members.map((member) => member ?? NO_VALUE).join(", ");
}

/** The values of a group that is a set of values; undefined if the group is one value. */
function setMembers(grouping: string, group: string | null): readonly (string | null)[] | undefined {
  if (group === null || memberNoun(grouping) === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(group);
    return Array.isArray(value) ? value.map((member) => (member === null ? null : String(member))) : undefined;
  } catch {
    return undefined;
  }
}

/** The name on one line, without direction characters. A long one loses its middle, as many names differ only at the end. */
export function shortName(name: string, lengthMax = 40): string {
  const chars = [...toPrintableLine(name)];
  if (chars.length <= lengthMax) return chars.join("");
  const endLength = Math.floor(lengthMax / 3);
  const start = chars.slice(0, lengthMax - endLength).join("");
  const end = chars.slice(-endLength - 1).join("");
  // Each part is cut at a space if one is near the cut, else by one character.
  return `${start.replace(/(?:( )\S{0,12}|.)$/u, "$1")}…${end.replace(/^(?:\S{0,6}( )|.)/u, "$1")}`;
}

/** The whole name appears when the pointer is on it. */
export function shortNameHtml(name: string): Html {
  return html`<bdi title="${name}">${shortName(name)}</bdi>`;
}
