// Budgets as bars: what is used of each, what is expected of the month, and where its limit is. Pure.

import type { BudgetUse } from "../usage/budgets.ts";
import { budgetUseText } from "./budget-text.ts";
import { amountHtml, chartNumber, counted, dayLabel, estimateText, monthName, quantityText } from "./format.ts";
import { type Html, html, nameHtml } from "./html.ts";

const BUDGETS_SHOWN_MAX = 6;
/** Of the width, for the largest bar. */
const SCALE_MAX_PERCENT = 98;

/** The fullest first. All bars have one scale, so that one that is four times its budget is four times as long. */
export function budgetList(budgets: readonly BudgetUse[]): Html {
  const reach = ({ percent, forecastPercent }: BudgetUse) =>
    Math.max(chartNumber(percent ?? "0"), chartNumber(forecastPercent ?? "0"));
  const shown = budgets.toSorted((a, b) => reach(b) - reach(a)).slice(0, BUDGETS_SHOWN_MAX);
  const scale = SCALE_MAX_PERCENT / Math.max(110, ...shown.map(reach));
  const more = budgets.length - shown.length;
  return html`<ul class="budgets">${shown.map((use) => budgetItem(use, scale))}</ul>
${more > 0 ? html`<p class="note">And ${counted(more, "budget")} used less: see <code>usage-export status</code>.</p>` : undefined}`;
}

function budgetItem(use: BudgetUse, scale: number): Html {
  const { name, amount, used, percent, forecast, forecastPercent, isNeverSeen } = use;
  const limit = quantityText(amount, use);
  const share =
    used === null || percent === null
      ? html`no day read, of ${limit}`
      : html`<b>${amountHtml(used, use)}</b> of ${limit} · ${roundedPercent(percent)}`;
  const expected =
    forecast === null || forecastPercent === null
      ? ""
      : `, heading for ${estimateText(forecast, use)} (${roundedPercent(forecastPercent)})`;
  return html`<li title="${budgetUseText(use)}"><span>${nameHtml(name)} <small>${use.period === "month" ? monthName(use.start) : dayLabel(use.start)}${use.costSource === null ? "" : `, ${use.costSource}`}</small></span>
<span>${share}${expected}${isNeverSeen ? html` <b class="flag">never used</b>` : undefined}</span>
${budgetBar(use, scale)}</li>
`;
}

function roundedPercent(percent: string): string {
  return `${Math.floor(chartNumber(percent))}%`;
}

/** The width is an attribute, because the page's policy forbids `style` attributes. */
function budgetBar({ percent, forecastPercent }: BudgetUse, scale: number): Html {
  const width = (of: string | null) => `${(chartNumber(of ?? "0") * scale).toFixed(1)}%`;
  const limit = `${(100 * scale).toFixed(1)}%`;
  const kind =
    chartNumber(percent ?? "0") > 100 ? "over" : chartNumber(forecastPercent ?? "0") > 100 ? "near" : "within";
  return html`<svg class="budget ${kind}" aria-hidden="true"><rect class="expected" width="${width(forecastPercent)}" height="100%"/><rect class="used" width="${width(percent)}" height="100%"/><rect class="limit" x="${limit}" width="2" height="100%"/></svg>`;
}
