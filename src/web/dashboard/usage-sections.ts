// The page Usage & cost: the answer to a question as a chart with its tables, why it changed, and the links that change the question. Pure.

import { type Amounts, type Answer, askedPeriods, comparedWindow } from "../../facts/answer.ts";
import type { Change } from "../../facts/changes.ts";
import { COSTS, isCost, SPLITS } from "../../facts/question.ts";
import { answerChart, GRAINS, type Grain, groupTable } from "../../show/answer-chart.ts";
import {
  amountHtml,
  capitalized,
  changeText,
  counted,
  daysText,
  type Measure,
  metricMeaning,
  metricName,
  metricUnit,
  moneyText,
  periodText,
  roundedText,
  signedText,
  withSign,
} from "../../show/format.ts";
import { choiceList, groupHtml, type Html, type HtmlValue, html, nameHtml, optionHtml } from "../../show/html.ts";
import { lackingDaysSentences, lackingSentences, reasonSentences, whyNotCompared } from "../../show/sentences.ts";
import { present } from "../../text.ts";
import { addsUp, groupingNoun } from "../../usage/dimensions.ts";
import { METRICS } from "../../usage/metrics.ts";
import { fixedView, pageHref, type View, viewQuery } from "../url.ts";
import type { FrameContent, PageContent, Section } from "./frame.ts";

/** `change` says why the total rose or fell. Undefined if nothing is compared, or if the question is narrowed to a filter or a group. */
export type UsageAnswer = { readonly answer: Answer; readonly change: Change | undefined };

export function usageContent({ answer, change }: UsageAnswer, asked: View): PageContent {
  const { question, projectCount, groups } = answer;
  // If the URL named no metric and the page chose the cost, its links name the cost, so that they lead to the same metric.
  const isCostChosen = asked.pageParameters.metric === undefined && isCost(question.metric);
  const chosen = isCostChosen ? { metric: question.metric, grouping: question.grouping } : {};
  const view = { ...asked, pageParameters: { ...asked.pageParameters, ...chosen } };
  const hasNumbers = projectCount > 0 && (!isCost(question.metric) || question.currency !== null);
  const numbers = hasNumbers && html`${totalHtml(answer)}${warningsHtml(answer, view)}`;
  const hasGroups = groups.length > 0;
  const body = html`<div class="toolbar">${groupingLinks(answer, view)}${hasGroups && grainLinks(view)}</div>
${narrowedHtml(answer, view)}${numbers}${emptyHtml(answer)}${hasGroups && chartHtml(answer, view)}`;
  const reasons = change ? reasonSentences(change) : [];
  const reasonList = html`<ul>${reasons.map((one) => html`<li>${one}</li>`)}</ul>`;
  return {
    view,
    controls: controlsOf(answer),
    compared: comparedWindow(answer),
    sections: present<Section>([
      { id: "usage", title: `${metricName(question.metric)}${byText(answer)}`, body },
      hasGroups && groupsSection(answer, view, reasons.length > 0 ? "two-thirds" : undefined),
      reasons.length > 0 && { id: "why", title: "What changed", width: "third", body: reasonList },
    ]),
  };
}

function byText({ question: { grouping } }: Answer): string {
  return grouping === "none" ? "" : ` by ${groupingNoun(grouping)}`;
}

/** The relative link to the same question with these changes; undefined removes a parameter. */
function usageLink(view: View, changes: View["pageParameters"]): string {
  return pageHref("usage", view, { ...view.pageParameters, ...changes });
}

function controlsOf({ question, available }: Answer): FrameContent["controls"] {
  const { metric, filter, currency } = question;
  const filters = new Set([...(filter === null ? [] : [filter]), ...available.filters]);
  const options = (names: Iterable<string>, chosen: string | null, titleOf = (name: string) => name) =>
    [...names].map((one) => optionHtml(one, titleOf(one), one === chosen));
  const field = (title: string, name: string, content: HtmlValue) =>
    html`<label>${title} <select name="${name}">${content}</select></label>\n`;
  const metrics = html`<optgroup label="Usage">${options(METRICS, metric, metricName)}</optgroup><optgroup label="Cost">${options(COSTS, metric, metricName)}</optgroup>`;
  const fields = [
    field("Metric", "metric", metrics),
    filters.size > 0 &&
      field("Filter", "filter", [optionHtml("", "all usage", filter === null), ...options(filters, filter)]),
    available.currencies.length > 1 && field("Currency", "currency", options(available.currencies, currency)),
  ];
  return { names: ["metric", "filter", "currency"], fields: html`${fields}` };
}

/** Removes the parameters that narrow the question to one group. */
const EVERY_GROUP = { group: undefined, "no-value": undefined };

function groupingLinks({ question: { grouping }, available }: Answer, view: View): Html | undefined {
  const groupings = SPLITS.filter((one) => one === grouping || available.groupings.includes(one));
  if (groupings.length < 2) return undefined;
  const links = groupings.map((one) => {
    const href = usageLink(view, { ...EVERY_GROUP, grouping: one, limit: undefined });
    return [one === "none" ? "total" : `by ${groupingNoun(one)}`, href, one === grouping] as const;
  });
  return choiceList("Split", links);
}

function grainLinks(view: View): Html {
  const href = (grain: Grain) => usageLink(view, { by: grain === "day" ? undefined : grain });
  const links = GRAINS.map((one) => [one, href(one), one === grainOf(view)] as const);
  return choiceList("Bars", links);
}

function grainOf(view: View): Grain {
  return GRAINS.find((one) => one === view.pageParameters.by) ?? "day";
}

function narrowedHtml({ question: { group, grouping }, groups }: Answer, view: View): Html | undefined {
  if (group === null) return undefined;
  const noun = groupingNoun(grouping);
  const label = groups[0]?.label;
  const name = label ? html`${nameHtml(label)} (${nameHtml(group.value)})` : groupHtml(grouping, group.value);
  return html`<p>Only ${noun} ${name}<span class="links"> · <a href="${usageLink(view, EVERY_GROUP)}">show every ${noun}</a></span></p>\n`;
}

/** The parameters that narrow a question to a group. A blank name can't be asked for, as an empty parameter counts as left out. */
export function groupParameters(grouping: string, group: string | null): Readonly<Record<string, string>> | undefined {
  if (grouping === "none" || group === "") return undefined;
  return group === null ? { "no-value": "yes" } : { group };
}

function totalHtml(answer: Answer): Html | undefined {
  const { total, groups, question } = answer;
  // A single group is its own total, also where groups do not add up.
  const sum = total ?? (question.group === null ? undefined : groups[0]);
  if (!sum || sum.amount === null) return undefined;
  const before = comparedWindow(answer);
  const figure = (title: string, shown: HtmlValue, more: string) =>
    html`<div><dt>${title}</dt><dd><span class="figure">${shown}</span><span class="change">${more}</span></dd></div>\n`;
  const compared =
    before && sum.before !== null && sum.change !== null
      ? html`${figure("Before", amountHtml(sum.before, question), periodText(before))}${figure("Change", changeText(sum.amount, sum.before), signedText(sum.change, question))}`
      : undefined;
  return html`<dl class="figures few">${figure(metricName(question.metric), amountHtml(sum.amount, question), periodText(askedPeriods(answer).period))}${compared}</dl>\n`;
}

/** Warnings stand right below the total, as a number that is too low looks like any other. The warning about incomplete days comes first. */
function warningsHtml(answer: Answer, view: View): Html {
  const { complete, lacking, days, groups, total, question } = answer;
  const { metric } = question;
  const settling = days.filter(({ state }) => state === "settling").map(({ day }) => day);
  const hasAmounts = groups.length > 0 || total?.amount != null;
  const notes = present<HtmlValue>([
    ...lackingDaysSentences(answer),
    ...lackingSentences(lacking),
    hasAmounts && whyNotCompared(answer),
  ]);
  if (lacking.incompleteDays.length > 0)
    notes[0] = html`<b class="flag">${notes[0]}</b> <a href="${pageHref("health", view)}">Data health</a> says why.`;
  const mayChange =
    settling.length > 0 &&
    ` Lighter days may still change, as usage is sometimes reported late: ${daysText(settling)}.`;
  const meaning = html`<p class="note">${metricName(metric)}: ${metricMeaning(metric)}.${mayChange}</p>\n`;
  const list = html`<div class="notice ${complete ? "none" : "bad"}"><ul>${notes.map((note) => html`<li>${note}</li>`)}</ul></div>\n`;
  return html`${notes.length > 0 && list}${hasAmounts && meaning}`;
}

function chartHtml(answer: Answer, view: View): Html {
  return answerChart(answer, {
    id: "usage-by-day",
    grain: grainOf(view),
    hrefOf: (one) => narrowedHref(answer, view, one),
    othersHref: moreGroupsHref(answer, view),
    below: downloads(view, "days"),
  });
}

/** The link that narrows the question to the group; undefined if it is narrowed already. */
function narrowedHref({ question: { grouping, group: only } }: Answer, view: View, group: string | null) {
  const parameters = only === null ? groupParameters(grouping, group) : undefined;
  return parameters && usageLink(view, { ...EVERY_GROUP, ...parameters });
}

const GROUP_LIMITS = [100, 1_000];

function moreGroupsHref({ question: { limit } }: Answer, view: View): string | undefined {
  const more = GROUP_LIMITS.find((one) => one > limit);
  return more === undefined ? undefined : usageLink(view, { limit: String(more) });
}

function groupsSection(answer: Answer, view: View, width: Section["width"]): Section {
  return {
    id: "groups",
    title: answer.question.grouping === "none" ? "Total" : capitalized(byText(answer).trim()),
    width,
    body: html`<div class="ranks">${groupsTable(answer, view)}</div>${downloads(view, "groups")}${sqlHtml(answer.sql)}`,
  };
}

function sqlHtml(statement: string): Html {
  return html`<details class="sql"><summary>SQL</summary>
<p><button type="button" class="copy" hidden data-copy="${statement}">Copy SQL</button></p><pre tabindex="0"><code>${statement}</code></pre></details>\n`;
}

function groupsTable(answer: Answer, view: View): Html {
  const { question, groups, other, total, compared } = answer;
  const { grouping, metric, sort, group } = question;
  const heading = (title: string, order: typeof sort) =>
    html`<a href="${usageLink(view, { sort: order === "amount" ? undefined : order })}"${order === sort && html` aria-current="true"`}>${title}</a>`;
  const cells = ({ amount, before, change }: Amounts) =>
    present<HtmlValue>([
      amountHtml(amount, question, roundedAmount),
      compared && amountHtml(before, question, roundedAmount),
      compared && amountHtml(before === null ? null : change, question, signedAmount),
      compared && (amount === null ? "–" : changeText(amount, before)),
    ]);
  // A request may have several tags, so amounts by tags are not added up.
  const otherCells = (sum: Amounts) =>
    addsUp(grouping) ? cells(sum) : ["not added up", ...(compared ? ["", "", ""] : [])];
  const more = moreGroupsHref(answer, view);
  const others = other ? counted(other.groups, "other") : "";
  return groupTable(answer, {
    caption: `${metricName(metric)}${byText(answer)}, rounded`,
    groups,
    hrefOf: (one) => narrowedHref(answer, view, one),
    cells,
    titles: [
      heading(metricName(metric), "amount"),
      ...(compared ? ["Before", heading("Difference", "change"), "Change"] : []),
    ],
    totals: [
      ...(other ? [[more === undefined ? others : html`<a href="${more}">${others}</a>`, ...otherCells(other)]] : []),
      ...(total && grouping !== "none" && group === null ? [["Total", ...cells(total)]] : []),
    ],
  });
}

function roundedAmount(amount: string, { currency }: Pick<Measure, "currency">): string {
  return currency === null ? roundedText(amount) : moneyText(amount, currency);
}

function signedAmount(amount: string, measure: Pick<Measure, "currency">): string {
  return withSign(roundedAmount(amount, measure), amount);
}

/** The links name the days by their dates, so that they lead to the same numbers tomorrow. */
function downloads(view: View, rows: "groups" | "days"): Html {
  const fixed = fixedView(view);
  const withoutGrain = { ...view.pageParameters, by: undefined };
  const csv = viewQuery(fixed, { pageParameters: { ...withoutGrain, rows } });
  const json = html` · <a href="api/v1/usage${viewQuery(fixed, { pageParameters: withoutGrain })}">JSON</a>`;
  const charges = viewQuery(fixed, { pageParameters: {} });
  const chargesByKey = viewQuery(fixed, { pageParameters: { by: "accessor" } });
  const chargeback = html` · Chargeback <a href="api/v1/chargeback.csv${charges}" download>by project</a>, <a href="api/v1/chargeback.csv${chargesByKey}" download>by API key</a>`;
  const more = rows === "groups" && [json, chargeback];
  return html`<p class="links"><a href="api/v1/usage.csv${csv}" download>Download CSV</a>${more}</p>\n`;
}

function emptyHtml(answer: Answer): Html | undefined {
  const { projectCount, groups, question, days, lacking } = answer;
  const empty = (text: HtmlValue) => html`<p class="empty">${text}</p>\n`;
  if (question.metric === "estimated_cost" && question.currency === null)
    return empty(
      html`No prices are configured. Add <code>prices</code> to the configuration; the cost of all stored usage is known then.`,
    );
  if (projectCount === 0) return empty(nothingExported(answer));
  if (groups.length + lacking.incompleteDays.length > 0) return undefined;
  return days.every(({ state }) => state === "unread")
    ? empty(html`None of these days was read. Choose other days, or run <code>usage-export backfill</code> for them.`)
    : empty(`No ${metricUnit(question.metric)} on these days. Choose another metric, or other days.`);
}

function nothingExported(answer: Answer): Html {
  const { metric, grouping, filter } = answer.question;
  const others = answer.available.groupings.filter((one) => one !== grouping);
  if (others.length === 0 && !isCost(metric) && filter === null) return html`No usage has been read yet.`;
  const what = `${isCost(metric) ? metricName(metric) : "Usage"}${byText(answer)}${filter === null ? "" : ` under the filter ${filter}`}`;
  const next =
    others.length > 0
      ? "Choose another split above."
      : html`Add it to <code>exports</code> of the configuration, and run <code>usage-export backfill</code> for the days before.`;
  return html`${what} is not exported. ${next}`;
}
