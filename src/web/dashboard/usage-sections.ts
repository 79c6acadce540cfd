// The page Usage & cost: the answer to a question as a chart with its tables, why it changed, and the links that change the question. Pure.

import type { Answer } from "../../facts/answer.ts";
import type { Change } from "../../facts/changes.ts";
import { COSTS, isCost, SPLITS } from "../../facts/question.ts";
import { answerChart, GRAINS, type Grain, groupCell, shareBar, unitOf } from "../../show/answer-chart.ts";
import { changeHtml } from "../../show/changes.ts";
import {
  changeText,
  chartNumber,
  counted,
  exactText,
  metricName,
  moneyText,
  monthName,
  periodHtml,
  roundedText,
  shortText,
  signedText,
} from "../../show/format.ts";
import {
  choiceList,
  columns,
  groupHtml,
  type Html,
  type HtmlValue,
  html,
  joinHtml,
  nameHtml,
  numberColumns,
  optionHtml,
  sqlHtml,
  table,
} from "../../show/html.ts";
import { lackingHtml } from "../../show/lacking.ts";
import { addsUp, groupingNoun } from "../../usage/dimensions.ts";
import { METRICS } from "../../usage/metrics.ts";
import { chosen, fixedView, type View, viewQuery } from "../question.ts";
import type { Section } from "./document.ts";
import type { FrameContent, PageContent } from "./frame.ts";

/** `change`: why the whole rose or fell; undefined of a part of the usage, whose groups say it themselves. */
export type UsageAnswer = { readonly answer: Answer; readonly change: Change | undefined };

type Group = Answer["groups"][number];
type Amounts = Pick<Group, "amount" | "before" | "change">;

export function usageContent({ answer, change }: UsageAnswer, view: View): PageContent {
  const { question, projectCount, groups } = answer;
  const link = linker(view);
  const isKnown = projectCount > 0 && (!isCost(question.metric) || question.currency !== null);
  const known = isKnown ? html`${totalHtml(answer)}${lackingHtml(answer)}` : undefined;
  const chart = groups.length > 0 ? chartHtml(answer, view, link) : undefined;
  const body = html`<div class="toolbar">${groupingLinks(answer, link)}${groups.length > 0 ? grainLinks(view, link) : undefined}</div>
${narrowedHtml(answer, link)}${known}${emptyHtml(answer, link)}${chart}`;
  return {
    controls: controlsOf(answer),
    sections: [
      { id: "usage", title: `${metricName(question.metric)}${by(answer)}`, body },
      ...(isKnown ? [groupsSection(answer, view, change !== undefined)] : []),
      ...(change ? [{ id: "why", title: "What changed", body: changeHtml(change), width: "third" as const }] : []),
    ],
  };
}

function by({ question: { grouping } }: Answer): string {
  return grouping === "none" ? "" : ` by ${groupingNoun(grouping)}`;
}

// The choices.

/** A relative link to the same question with these changes; undefined takes a parameter away. */
type Link = (changes: Readonly<Record<string, string | undefined>>) => string;

function linker(view: View): Link {
  return (changes) => {
    const all = Object.entries({ ...Object.fromEntries(view.more), ...changes });
    const more = all.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
    return `./usage${viewQuery(view, { more })}`;
  };
}

/** More filters are not listed. */
const FILTERS_MAX = 50;

function controlsOf({ question, available }: Answer): FrameContent["controls"] {
  const { metric, filter, currency } = question;
  const filters = [...new Set([...(filter === null ? [] : [filter]), ...available.filters])].slice(0, FILTERS_MAX);
  const metrics = (names: readonly string[]) => names.map((one) => optionHtml(one, metricName(one), one === metric));
  const field = (title: string, name: string, options: HtmlValue) =>
    html`<label>${title} <select name="${name}">${options}</select></label>
`;
  const all = html`<optgroup label="Usage">${metrics(METRICS)}</optgroup><optgroup label="Cost">${metrics(COSTS)}</optgroup>`;
  const filtered = [
    optionHtml("", "all usage", filter === null),
    ...filters.map((one) => optionHtml(one, one, one === filter)),
  ];
  const currencies = available.currencies.map((one) => optionHtml(one, one, one === currency));
  return {
    names: ["metric", "filter", "currency"],
    fields: html`${field("Metric", "metric", all)}${filters.length > 0 ? field("Filter", "filter", filtered) : undefined}${
      currencies.length > 1 ? field("Currency", "currency", currencies) : undefined
    }`,
  };
}

/** Another grouping has other groups, so the question is then no longer narrowed to one. */
const EVERY_GROUP = { group: undefined, "no-value": undefined };

function groupingLinks({ question: { grouping }, available }: Answer, link: Link): Html | undefined {
  const groupings = SPLITS.filter((one) => one === grouping || available.groupings.includes(one));
  if (groupings.length < 2) return undefined;
  return choiceList(
    "Grouping",
    groupings.map((one) => {
      const href = link({ ...EVERY_GROUP, grouping: one, limit: undefined });
      return [one === "none" ? "total" : `by ${groupingNoun(one)}`, href, one === grouping];
    }),
  );
}

function grainLinks(view: View, link: Link): Html {
  const now = grainOf(view);
  return choiceList(
    "Bars",
    GRAINS.map((one) => [one, link({ by: one === "day" ? undefined : one }), one === now]),
  );
}

function grainOf(view: View): Grain {
  return GRAINS.find((one) => one === chosen(view, "by")) ?? "day";
}

function narrowedHtml({ question: { group, grouping }, groups }: Answer, link: Link): Html | undefined {
  if (group === null) return undefined;
  const noun = groupingNoun(grouping);
  const label = groups[0]?.label;
  const name = label ? html`${nameHtml(label)} (${nameHtml(group.value)})` : groupHtml(grouping, group.value);
  return html`<p>Only ${noun} ${name}<span class="links"> · <a href="${link(EVERY_GROUP)}">show every ${noun}</a></span></p>
`;
}

// The amounts.

function totalHtml({ total, groups, question }: Answer): Html | undefined {
  // A single group is its own total, also where groups do not add up.
  const sum = total ?? (question.group === null ? undefined : groups[0]);
  if (!sum || sum.amount === null) return undefined;
  const { before, from, to } = question;
  const amounts: readonly (readonly [string, Html, HtmlValue])[] = [
    [metricName(question.metric), amountCell(sum.amount, question, shortText), periodHtml({ start: from, end: to })],
    ...(before && sum.before !== null && sum.change !== null
      ? ([
          ["Before", amountCell(sum.before, question, shortText), periodHtml({ start: before.from, end: before.to })],
          ["Change", html`${changeText(sum.amount, sum.before)}`, signedText(sum.change, question)],
        ] as const)
      : []),
  ];
  const figures = amounts.map(
    ([title, figure, more]) =>
      html`<div><dt>${title}</dt><dd><span class="figure">${figure}</span><span class="change">${more}</span></dd></div>
`,
  );
  return html`<dl class="figures few">${figures}</dl>
`;
}

/** Rounded; the exact amount appears when it is pointed at. */
function amountCell(amount: string | null, question: Answer["question"], shown = roundedAmount): Html {
  if (amount === null) return html`<span title="not known: not sent, or not read">–</span>`;
  return html`<data value="${amount}" title="${exactText(amount)} ${unitOf(question)}">${shown(amount, question)}</data>`;
}

function roundedAmount(amount: string, { currency }: Answer["question"]): string {
  return currency === null ? roundedText(amount) : moneyText(amount, currency);
}

function chartHtml(answer: Answer, view: View, link: Link): Html {
  const grain = grainOf(view);
  const { grouping, metric } = answer.question;
  return answerChart(answer, {
    ...{ id: "usage-by-day", grain },
    title: `${metricName(metric)} by ${grain}${grouping === "none" ? "" : ` and ${groupingNoun(grouping)}`}`,
    hrefOf: (group) => narrowed(answer, group, link),
    othersHref: moreGroups(answer, link),
    below: downloads(answer, view, "days"),
  });
}

/** Undefined where it is narrowed already. A blank name can't be asked for, as an empty parameter counts as left out. */
function narrowed({ question: { grouping, group: only } }: Answer, group: string | null, link: Link) {
  if (grouping === "none" || only !== null || group === "") return undefined;
  return group === null ? link({ "no-value": "yes", group: undefined }) : link({ group, "no-value": undefined });
}

const LIMITS = [100, 1_000];

/** Undefined if no more can be listed. */
function moreGroups({ question: { limit } }: Answer, link: Link): string | undefined {
  const more = LIMITS.find((one) => one > limit);
  return more === undefined ? undefined : link({ limit: String(more) });
}

function groupsSection(answer: Answer, view: View, hasNeighbour: boolean): Section {
  const { groups, question } = answer;
  const listed = groups.length > 0 ? groupsTable(answer, linker(view)) : undefined;
  return {
    ...{ id: "groups", title: question.grouping === "none" ? "Total" : by(answer).trim().replace("b", "B") },
    ...{ width: hasNeighbour ? "two-thirds" : undefined, body: html`${listed}${downloads(answer, view, "groups")}` },
  };
}

function groupsTable(answer: Answer, link: Link): Html {
  const { question, groups, other, total, compared } = answer;
  const { grouping, metric, sort } = question;
  const heading = (title: string, order: typeof sort) =>
    html`<a href="${link({ sort: order === "amount" ? undefined : order })}"${order === sort ? html` aria-current="true"` : undefined}>${title}</a>`;
  const noun = groupingNoun(grouping);
  const titles = [
    ...columns(grouping === "none" ? "" : `${noun.charAt(0).toUpperCase()}${noun.slice(1)}`),
    ...numberColumns(heading(metricName(metric), "amount")),
    ...(compared ? numberColumns("Before", heading("Difference", "change"), "Change") : []),
  ];
  const cells = ({ amount, before, change }: Amounts) => [
    amountCell(amount, question),
    ...(compared
      ? [
          amountCell(before, question),
          amountCell(before === null ? null : change, question, signed),
          amount === null ? "–" : changeText(amount, before),
        ]
      : []),
  ];
  const largest = Math.max(...groups.map(({ amount }) => chartNumber(amount ?? "0")));
  const rows = groups.map((one) => {
    const href = narrowed(answer, one.group, link);
    const name = grouping === "none" ? "Total" : groupCell(grouping, one, groups);
    const length = chartNumber(one.amount ?? "0");
    // A credit has none.
    const bar = groups.length > 1 && length >= 0 ? shareBar(length / largest) : undefined;
    return [html`${href === undefined ? name : html`<a href="${href}">${name}</a>`}${bar}`, ...cells(one)];
  });
  // A request may count in several of them.
  const otherCells = (sum: Amounts) =>
    addsUp(grouping) ? cells(sum) : ["not added up", ...(compared ? ["", "", ""] : [])];
  const more = moreGroups(answer, link);
  const others = other ? counted(other.groups, "other") : "";
  const totals = [
    ...(other ? [[more === undefined ? others : html`<a href="${more}">${others}</a>`, ...otherCells(other)]] : []),
    ...(total && grouping !== "none" && question.group === null ? [["Total", ...cells(total)]] : []),
  ];
  return html`<div class="ranks">${table(`${metricName(metric)}${by(answer)}, rounded`, titles, rows, totals)}</div>
`;
}

function signed(amount: string, question: Answer["question"]): string {
  const text = roundedAmount(amount, question);
  return amount.startsWith("-") || amount === "0" ? text : `+${text}`;
}

/** The links name the days, so that the file holds what the page shows also when it is loaded tomorrow. */
function downloads({ sql }: Answer, view: View, rows: "groups" | "days"): Html {
  const fixed = fixedView(view);
  const more = view.more.filter(([name]) => name !== "by");
  const csv = viewQuery(fixed, { more: [...more, ["rows", rows]] });
  const json = rows === "groups" ? html` · <a href="api/v1/usage${viewQuery(fixed, { more })}">JSON</a>` : undefined;
  return html`<p class="links"><a href="api/v1/usage.csv${csv}" download>Download CSV</a>${json}${rows === "groups" ? chargebackLinks(view) : undefined}</p>
${sqlHtml(sql[rows])}`;
}

/** Of the month of the last day that is shown. */
function chargebackLinks({ period: { end }, project }: View): Html {
  const link = (by: string, title: string) => {
    const query = new URLSearchParams({ month: end.slice(0, 7), by, ...(project !== undefined && { project }) });
    return html`<a href="api/v1/chargeback.csv?${query.toString()}" download>${title}</a>`;
  };
  return html` · Chargeback of ${monthName(end)} ${link("project", "by project")}, ${link("accessor", "by API key")}`;
}

// Why there are no numbers, and what to do.

function emptyHtml(answer: Answer, link: Link): Html | undefined {
  const { projectCount, groups, question, days } = answer;
  if (question.metric === "estimated_cost" && question.currency === null)
    return html`<p class="empty">No prices are configured. Add <code>prices</code> to the configuration; the cost of all stored usage is known then.</p>
`;
  if (projectCount === 0) return nothingExported(answer, link);
  if (groups.length > 0) return undefined;
  if (days.every(({ state }) => state === "unread"))
    return html`<p class="empty">None of these days was read. Choose other days, or run <code>usage-export backfill</code> for them.</p>
`;
  const others = METRICS.filter((one) => one !== question.metric).map(
    (one) => html`<a href="${link({ metric: one })}">${metricName(one)}</a>`,
  );
  return html`<p class="empty">There is none of it on these days. Other metrics: ${joinHtml(others, ", ")}.</p>
`;
}

function nothingExported(answer: Answer, link: Link): Html {
  const { metric, grouping, filter } = answer.question;
  const others = answer.available.groupings.filter((one) => one !== grouping);
  if (others.length === 0 && !isCost(metric) && filter === null)
    return html`<p class="empty">No usage was read yet. To read it now, run <code>usage-export export</code>; <code>usage-export start</code> does it on schedule. Data health says what is due.</p>
`;
  const setting =
    metric === "billed_cost"
      ? html`Add an export with <code>"source": "billing"</code> to the configuration`
      : html`Add the grouping <code>${grouping}</code> to <code>exports[].groupings</code> of the configuration`;
  const links = others.map(
    (one) =>
      html`<a href="${link({ ...EVERY_GROUP, grouping: one })}">${one === "none" ? "in total" : `by ${groupingNoun(one)}`}</a>`,
  );
  const next =
    others.length > 0
      ? html`It is known ${joinHtml(links, ", ")}.`
      : html`${setting}, and run <code>usage-export backfill</code> for the days before.`;
  const what = isCost(metric) ? metricName(metric) : "Usage";
  const under =
    filter === null
      ? undefined
      : html` under the filter ${nameHtml(filter)} (<a href="${link({ filter: undefined })}">show all usage</a>)`;
  return html`<p class="empty">${what}${by(answer)}${under} is not exported. ${next}</p>
`;
}
