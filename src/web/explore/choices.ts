// The choices of the page Usage & cost: the fields of its form, and the links that change the question. Pure.

import type { Answer } from "../../facts/answer.ts";
import { COSTS, SPLITS } from "../../facts/question.ts";
import { metricName } from "../../show/format.ts";
import { type Html, type HtmlValue, html } from "../../show/html.ts";
import { addsUp, groupingNoun } from "../../usage/dimensions.ts";
import { METRICS } from "../../usage/metrics.ts";
import type { FrameContent } from "../dashboard/frame.ts";
import { type View, viewQuery } from "../dashboard/view.ts";
import { CHART_KINDS } from "./question.ts";

export type ChartKind = (typeof CHART_KINDS)[number];

/** A relative link to the same question with these changes; undefined takes a parameter away. */
export type Link = (changes: Readonly<Record<string, string | undefined>>) => string;

export function linker(view: View): Link {
  return (changes) => {
    const parameters = { ...Object.fromEntries(view.more ?? []), ...changes };
    const more = Object.entries(parameters).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    return `./usage${viewQuery(view, { more })}`;
  };
}

// The choices.

/** More filters are not listed. */
const FILTERS_MAX = 50;

export function controlsOf({ question, available }: Answer): FrameContent["controls"] {
  const { metric, filter, currency } = question;
  const filters = [...new Set([...(filter === null ? [] : [filter]), ...available.filters])].slice(0, FILTERS_MAX);
  const options = (metrics: readonly string[]) =>
    metrics.map((one) => optionHtml(one, metricName(one), one === metric));
  const metrics = html`<optgroup label="Usage">${options(METRICS)}</optgroup><optgroup label="Cost">${options(COSTS)}</optgroup>`;
  const choices = [
    optionHtml("", "all usage", filter === null),
    ...filters.map((one) => optionHtml(one, one, one === filter)),
  ];
  return {
    names: ["metric", "filter", "currency"],
    fields: html`<label>Metric <select name="metric">${metrics}</select></label>
${
  filters.length > 0
    ? html`<label>Filter <select name="filter">${choices}</select></label>
`
    : undefined
}${
  available.currencies.length > 1
    ? html`<label>Currency <select name="currency">${available.currencies.map((one) => optionHtml(one, one, one === currency))}</select></label>
`
    : undefined
}`,
  };
}

function optionHtml(value: string, title: string, isChosen: boolean): Html {
  return html`<option value="${value}"${isChosen ? html` selected` : undefined}>${title}</option>`;
}

/** Another grouping has other groups, so the question is then no longer narrowed to one. */
export const EVERY_GROUP = { group: undefined, "no-value": undefined };

type Choice = readonly [text: HtmlValue, href: string, isCurrent: boolean];

export function groupingLinks({ question: { grouping }, available }: Answer, link: Link): Html | undefined {
  const groupings = SPLITS.filter((one) => one === grouping || available.groupings.includes(one));
  return choiceList(
    "Grouping",
    groupings.map((one) => {
      const href = link({ ...EVERY_GROUP, grouping: one, limit: undefined });
      return [one === "none" ? "total" : `by ${groupingNoun(one)}`, href, one === grouping];
    }),
  );
}

export function kindLinks({ question: { grouping }, groups }: Answer, link: Link, kind: ChartKind): Html | undefined {
  if (!addsUp(grouping) || groups.length === 0) return undefined;
  return choiceList(
    "Chart",
    CHART_KINDS.map((one) => [one, link({ chart: one }), one === kind]),
  );
}

function choiceList(label: string, choices: readonly Choice[]): Html {
  const items = choices.map(
    ([text, href, isCurrent]) =>
      html`<li><a href="${href}"${isCurrent ? html` aria-current="true"` : undefined}>${text}</a></li>`,
  );
  return html`<ul class="choices" aria-label="${label}">${items}</ul>
`;
}
