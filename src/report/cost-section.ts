// The section on what usage cost and why that changed: the words, a waterfall with the effects of usage and prices, and its exact table.
// Pure.

import { changeHtml, sentencesHtml } from "./change-section.ts";
import { type CostChange, type CostPart, costSentences, costTitle } from "./cost-change.ts";
import { counted, exactText, isZero } from "./format.ts";
import { columns, folded, groupHtml, type Html, html, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { ChangeData } from "./report-data.ts";
import { waterfall } from "./waterfall.ts";

/** Undefined without prices and billing. */
export function costSection({ change, billed, costs, costRowsLeftOut }: ChangeData): Section | undefined {
  const [metric] = billed.metrics;
  const estimated = costs.map((cost) => {
    const sentences = costSentences(change, cost, metric !== undefined);
    return html`${sentencesHtml(sentences)}${cost.daysCompared > 0 ? costChart(cost) : undefined}`;
  });
  const body = [
    ...(metric ? [changeHtml(billed, metric, "billed-waterfall")] : []),
    ...(costRowsLeftOut > 0 ? [leftOutHtml(costRowsLeftOut)] : estimated),
  ];
  return body.length > 0 ? section(html`${body}`) : undefined;
}

function section(body: Html): Section {
  return { id: "what-it-cost", title: "What it cost", body };
}

function leftOutHtml(rows: number): Html {
  return html`<p class="note">Left out here, because it would be calculated from ${exactText(String(rows))} rows of usage by model or billing, which takes seconds: choose fewer days or run <code>usage-export report</code>, which has it.</p>`;
}

function costChart(cost: CostChange): Html {
  const { before, after, parts, currency } = cost;
  const title = `Change of the estimated cost by model, in ${currency}`;
  const changes = parts.flatMap((part) => {
    const name = partName(part);
    // Of days that are not compared nobody knows the effects.
    if (part.volume === null || part.price === null) return [{ name, change: part.change }];
    return [
      { name, change: part.volume },
      { name: `price of ${name}`, change: part.price },
    ];
  });
  const id = `cost-waterfall-${currency.toLowerCase()}`;
  return waterfall({ id, title, before, after, changes }, costTable(title, cost));
}

function partName({ part, group, groups }: CostPart): string {
  if (part === "others") return counted(groups, "other");
  return part === "group" ? (group ?? "no value") : part;
}

function costTable(title: string, cost: CostChange): Html {
  const effect = (amount: string | null) => (amount === null ? undefined : exactText(amount));
  const rows = cost.parts.map((part) => [
    part.part === "group" ? groupHtml("model", part.group) : html`<i>${partName(part)}</i>`,
    exactText(part.before),
    exactText(part.after),
    exactText(part.change),
    effect(part.volume),
    effect(part.price),
    part.status ?? undefined,
  ]);
  const { before, after, change, compared } = cost;
  const total = [
    html`<b>total</b>`,
    ...[before, after, change, compared.volume, compared.price].map(exactText),
    undefined,
  ];
  const days =
    isZero(change) || cost.parts.every(({ part }) => part !== "days not compared")
      ? ""
      : "; days that are not compared have no effects";
  return folded(
    `Table: ${title}`,
    table(
      `${costTitle(cost)}, exact; the rows add up to the total, and usage and prices to the change${days}`,
      [...columns("model"), ...numberColumns("Before", "After", "Change", "Usage", "Prices"), ...columns("")],
      [...rows, total],
    ),
  );
}
