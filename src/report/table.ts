// Tables: on their own, and behind a chart for those who want its numbers or can't see it. Pure.

import { type Filling, type Html, html } from "./html.ts";

export type Column = { readonly title: Filling; readonly numeric?: boolean };

/** The first cell of a row names it. A wide table scrolls in a box of its own. */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Filling[])[]): Html {
  return html`<div class="scroll" role="group" aria-label="${caption}" tabindex="0"><table>
<caption>${caption}</caption>
<thead><tr>${columns.map(({ title, numeric }) => html`<th scope="col"${numericClass(numeric)}>${title}</th>`)}</tr></thead>
<tbody>
${rows.map((row) => html`<tr>${row.map((cell, i) => cellHtml(cell, columns[i]?.numeric, i === 0))}</tr>\n`)}</tbody>
</table></div>
`;
}

function cellHtml(cell: Filling, numeric: boolean | undefined, names: boolean): Html {
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
