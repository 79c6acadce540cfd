// Sorts the tables of the page by a click on the heading of a column.

import { compareCells } from "./compare.ts";
import { element } from "./element.ts";

type Direction = "ascending" | "descending";
type Order = { readonly column: number; readonly direction: Direction };

/** By the table's caption: a page that is renewed keeps the orders that a person chose. */
const orders = new Map<string, Order>();

/** Turns the headings of the tables into buttons, and sorts again what had been sorted. `page` may be one that is not shown yet. */
export function prepareTables(page: Document): void {
  for (const table of page.querySelectorAll<HTMLTableElement>("table[data-sort]")) {
    for (const heading of table.tHead?.rows[0]?.cells ?? []) addButton(heading);
    const order = orders.get(nameOf(table));
    if (order) sort(table, order);
  }
}

function addButton(heading: HTMLTableCellElement): void {
  if (heading.querySelector("a, button") || heading.textContent?.trim() === "") return;
  heading.replaceChildren(element("button", { type: "button", class: "sort" }, ...heading.childNodes));
}

export function listenForSorting(): void {
  document.addEventListener("click", ({ target }) => {
    const heading = target instanceof Element ? target.closest("button.sort")?.closest("th") : null;
    const table = heading?.closest("table");
    if (!heading || !table) return;
    const order = { column: heading.cellIndex, direction: nextDirection(heading) };
    orders.set(nameOf(table), order);
    sort(table, order);
  });
}

/** The largest amounts first, and the names from A. */
function nextDirection(heading: HTMLTableCellElement): Direction {
  const now = heading.getAttribute("aria-sort");
  if (now === null) return heading.classList.contains("n") ? "descending" : "ascending";
  return now === "ascending" ? "descending" : "ascending";
}

function sort(table: HTMLTableElement, { column, direction }: Order): void {
  const [body] = table.tBodies;
  if (!body) return;
  for (const heading of table.tHead?.rows[0]?.cells ?? []) {
    if (heading.cellIndex === column) heading.setAttribute("aria-sort", direction);
    else heading.removeAttribute("aria-sort");
  }
  const rows = [...body.rows].map((row) => ({ row, text: textOf(row.cells[column]) }));
  const sign = direction === "ascending" ? 1 : -1;
  rows.sort((a, b) => {
    // Cells without a text are last in both directions.
    if (a.text === "" || b.text === "") return a.text === b.text ? 0 : a.text === "" ? 1 : -1;
    return sign * compareCells(a.text, b.text);
  });
  body.append(...rows.map(({ row }) => row));
}

function textOf(cell: HTMLTableCellElement | undefined): string {
  const exact = cell?.querySelector("data[value]")?.getAttribute("value");
  return exact ?? cell?.textContent?.trim() ?? "";
}

function nameOf(table: HTMLTableElement): string {
  return table.caption?.textContent ?? "";
}
