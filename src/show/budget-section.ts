// The budgets in the periods of a report or a dashboard, as a table. Pure.

import type { BudgetUse } from "../usage/budgets.ts";
import { budgetPeriod, budgetUnit, lackingTexts } from "./budget-text.ts";
import { exactText, roundedText } from "./format.ts";
import { columns, type HtmlValue, html, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";

const COLUMNS = [
  ...columns("Budget", "Period"),
  ...numberColumns("Amount", "Used", "Share", "Forecast"),
  ...columns("Threshold reached", "What is lacking"),
];

/** Undefined without any budget. */
export function budgetSection(budgets: readonly BudgetUse[]): Section | undefined {
  if (budgets.length === 0) return undefined;
  const note = html`<p class="note">Usage with several tags or models counts whole for each of them: budgets overlap and are never to be added up. The forecast is of the current month, by its usual weeks.</p>
`;
  return {
    id: "budgets",
    title: "Budgets",
    body: html`${note}${table("What is used of each budget", COLUMNS, budgets.map(budgetCells))}`,
  };
}

function budgetCells(use: BudgetUse): readonly HtmlValue[] {
  const { name, amount, used, percent, forecast, reached, isFinal } = use;
  const lacking = lackingTexts(use).join(", ");
  return [
    nameHtml(name),
    budgetPeriod(use),
    html`${exactText(amount)} <small>${budgetUnit(use)}</small>`,
    used === null ? "–" : html`<span title="${exactText(used)}">${roundedText(used)}</span>`,
    percent === null ? "–" : `${percent}%`,
    forecast === null ? "–" : roundedText(forecast),
    reached.length === 0 ? "none" : html`<span class="flag">${reached.at(-1)}%</span>`,
    isFinal && lacking === "" ? "nothing, all days are final" : lacking,
  ];
}
