// HTML in which a text can't become markup: every value is escaped, unless it is HTML already. Also tables, and names from
// outside (of models, tags, projects). Pure.

import { escapeHtml } from "../text.ts";

/** A piece of HTML that is safe to fill into another one's content. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

export type HtmlValue = Html | string | number | readonly HtmlValue[] | undefined;

/** Fill in content, and values of attributes in double quotes; nowhere else, as in `<style>` other rules hold. */
export function html(parts: TemplateStringsArray, ...fillings: readonly HtmlValue[]): Html {
  return new Html(parts.map((part, i) => `${part}${renderValue(fillings[i])}`).join(""));
}

/** Not for texts from outside: they go in as they are. */
export function trustedHtml(text: string): Html {
  return new Html(text);
}

function renderValue(filling: HtmlValue): string {
  if (filling === undefined) return "";
  if (filling instanceof Html) return filling.toString();
  if (typeof filling === "object") return filling.map(renderValue).join("");
  return escapeText(String(filling));
}

function escapeText(text: string): string {
  // A control character can't stand in HTML: a browser would drop or change it.
  return escapeHtml(text).replaceAll(/[\p{Cc}\p{Cs}]/gu, (char) => (/[\t\n]/.test(char) ? char : "\ufffd"));
}

// Tables: on their own, and behind a chart for those who want its numbers or can't see it. Pure.

export type Column = { readonly title: HtmlValue; readonly numeric?: boolean };

/** The first cell of a row names it. A wide table scrolls in a box of its own. */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly HtmlValue[])[]): Html {
  return html`<div class="scroll" role="group" aria-label="${caption}" tabindex="0"><table>
<caption>${caption}</caption>
<thead><tr>${columns.map(({ title, numeric }) => html`<th scope="col"${numericClass(numeric)}>${title}</th>`)}</tr></thead>
<tbody>
${rows.map((row) => html`<tr>${row.map((cell, i) => cellHtml(cell, columns[i]?.numeric, i === 0))}</tr>\n`)}</tbody>
</table></div>
`;
}

function cellHtml(cell: HtmlValue, numeric: boolean | undefined, names: boolean): Html {
  return names
    ? html`<th scope="row"${numericClass(numeric)}>${cell}</th>`
    : html`<td${numericClass(numeric)}>${cell}</td>`;
}

function numericClass(numeric: boolean | undefined): Html | undefined {
  return numeric ? html` class="n"` : undefined;
}

/** Closed on a screen, open on paper. */
export function folded(summary: string, content: Html): Html {
  return html`<details>
<summary>${summary}</summary>
${content}</details>
`;
}

// Makes names from outside (of models, tags, projects) fit to be shown. Pure.

const NO_VALUE = "no value";
const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
/** The longest of emoji has fewer code units; letters with a heap of accents have more. */
const GRAPHEME_UNITS_MAX = 16;

/** A name in a text: its direction can't turn what stands around it. */
export function nameHtml(name: string | null): Html {
  if (name === null) return html`<i>${NO_VALUE}</i>`;
  return name.trim() === "" ? html`<i>blank name</i>` : html`<bdi>${name}</bdi>`;
}

/** A group of a grouping; a set of tags as one mark a tag. */
export function groupHtml(grouping: string, group: string | null): Html {
  const tags = grouping === "tags" && group !== null ? parseTags(group) : undefined;
  if (tags === undefined) return nameHtml(group);
  if (tags.length === 0) return html`<i>no tags</i>`;
  return html`<span class="tags">${tags.map((tag) => html`<span>${nameHtml(tag)}</span> `)}</span>`;
}

function parseTags(text: string): readonly (string | null)[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.map((tag) => (tag === null ? null : String(tag))) : undefined;
  } catch {
    return undefined;
  }
}

/** Labels for a chart: at most so many columns wide, each another one, in the order of the names. */
export function chartLabels(names: readonly (string | null)[], columnsMax: number): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const label = distinctLabel(name ?? NO_VALUE, columnsMax, taken);
    taken.add(label);
    return label;
  });
}

function distinctLabel(name: string, columnsMax: number, taken: ReadonlySet<string>): string {
  const label = chartLabel(name, columnsMax);
  for (let count = 2; taken.has(label); count++) {
    const mark = ` (${count})`;
    const numbered = chartLabel(name, columnsMax - mark.length) + mark;
    if (!taken.has(numbered)) return numbered;
  }
  return label;
}

/**
 * One label for a chart. Every text from outside that the chart library gets must come from here: it looks texts up in plain
 * objects, and a text "__proto__" would change the prototype of all objects of this process.
 */
export function chartLabel(name: string, columnsMax: number): string {
  const label = truncatedName(name, columnsMax);
  return label in {} ? `\u2060${label}` : label;
}

/** Cut between what a person takes for characters, with an ellipsis. What is wide, as Chinese and emoji are, takes two columns. */
export function truncatedName(name: string, columnsMax: number): string {
  let columns = 0;
  let whole = "";
  let cut = "";
  for (const { segment } of GRAPHEMES.segment(oneLine(name))) {
    columns += isWide(segment) ? 2 : 1;
    if (columns > columnsMax) return `${cut.trimEnd()}…`;
    whole += segment.length > GRAPHEME_UNITS_MAX ? String.fromCodePoint(segment.codePointAt(0) ?? 0xfffd) : segment;
    if (columns < columnsMax) cut = whole;
  }
  return whole;
}

/** How wide a label is. */
export function columnsOf(label: string): number {
  return [...GRAPHEMES.segment(label)].reduce((sum, { segment }) => sum + (isWide(segment) ? 2 : 1), 0);
}

function oneLine(name: string): string {
  return name
    .replaceAll(/\p{Bidi_Control}/gu, "")
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .replaceAll(/\p{Cs}/gu, "\ufffd")
    .trim();
}

/** The beginning of Korean, and all from the signs of Chinese on, emoji included. */
function isWide(grapheme: string): boolean {
  const codePoint = grapheme.codePointAt(0) ?? 0;
  return codePoint >= 0x2e80 || (codePoint >= 0x1100 && codePoint < 0x1200);
}
