// The file to send on: the overview with its style and script in it. The same data makes the same bytes.

import type { Overview } from "../../facts/overview.ts";
import { counted, instantText, periodText } from "../../show/format.ts";
import { html, nameHtml } from "../../show/html.ts";
import { sentences } from "../../show/sentence.ts";
import type { BudgetUse } from "../../usage/budgets.ts";
import { dayCount } from "../../usage/days.ts";
import { ADDING_UP_WARNING, fileText } from "./document.ts";
import { overviewSections } from "./overview-sections.ts";
import { leadHtml } from "./pages.ts";

export type ReportData = {
  readonly overview: Overview;
  readonly budgets: readonly BudgetUse[];
  /** Whether it is of one project alone. */
  readonly isOfProject: boolean;
};

export function renderReport({ overview, budgets, isOfProject }: ReportData, madeAt: Date, script: string): string {
  const { period, before, total } = overview;
  const days = `${periodText(period)} (${counted(dayCount(period), "day")})`;
  const scope = isOfProject ? html`project ${total.projects.map(nameHtml)}` : html`all projects`;
  const compared = total.compared && before ? html` · compared with ${periodText(before)}` : undefined;
  return fileText(
    {
      title: `Usage report, ${isOfProject ? `${total.projects.join(", ")}, ` : ""}${days}`,
      header: html`<h1>Usage report</h1>
<p class="subtitle">${days} · ${scope}${compared}</p>
${leadHtml(sentences(overview, budgets, undefined))}`,
      sections: overviewSections(overview, budgets, undefined),
    },
    html`<p>Made ${instantText(madeAt)} by usage-export from its own database: what the service had answered until then. ${ADDING_UP_WARNING}</p>`,
    script,
  );
}
