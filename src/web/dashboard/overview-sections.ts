// What the overview and the report file show on one screen: what usage costs, how much was used, of what and by whom. On the overview,
// figures and groups link to the page Usage & cost, which says more; the file has no links. Pure.

import type { Answer } from "../../facts/answer.ts";
import type { Overview } from "../../facts/overview.ts";
import { answerChart, chartTitle, groupTable } from "../../show/answer-chart.ts";
import {
  amountHtml,
  budgetShareText,
  capitalized,
  changeText,
  counted,
  dayLabel,
  isZero,
  metricMeaning,
  metricName,
  monthName,
  quantityText,
  spentText,
} from "../../show/format.ts";
import { choiceList, type Html, html, nameHtml } from "../../show/html.ts";
import { isNew, lackingSentences, namesText, usedFigures, whyNotCompared } from "../../show/sentences.ts";
import { present } from "../../text.ts";
import type { BudgetUse } from "../../usage/budgets.ts";
import { dayCount } from "../../usage/days.ts";
import { addsUp, groupingNoun } from "../../usage/dimensions.ts";
import { pageHref, type View } from "../url.ts";
import type { Section } from "./frame.ts";
import { groupParameters } from "./usage-sections.ts";

/** The days and project that the links of the page keep; undefined in the report file, which has no links. */
type LinkedView = View | undefined;

/** The chart shows the split by the grouping that the URL's `by` names, or else the first split. */
export function overviewSections(data: Overview, budgets: readonly BudgetUse[], view: LinkedView) {
  if (isNew(data)) return [];
  const main = data.cost ?? data.total;
  const { metric } = main.question;
  const mainSplits = data.splits.filter(({ question, groups }) => question.metric === metric && groups.length > 0);
  const chart = mainSplits.find((one) => one.question.grouping === view?.pageParameters.by) ?? mainSplits[0] ?? main;
  const hasBudgets = budgets.length > 0;
  const splits = data.splits.filter(({ groups }) => groups.some(({ amount }) => !isZero(amount ?? "0")));
  // If there are no budgets, the first ranking stands beside the chart, and the others below it: two share the width in halves ("third half").
  const countBelow = splits.length - (hasBudgets ? 0 : 1);
  const widthBelow = countBelow > 3 ? "quarter" : countBelow === 2 ? "third half" : "third";
  return present<Section>([
    { id: "summary", title: "In short", body: summaryHtml(data, view), isTitleHidden: true },
    chart.groups.length > 0 && chartSection(chart, mainSplits, view),
    hasBudgets && { id: "budgets", title: "Budgets", width: "third", body: budgetList(budgets) },
    ...splits.map((split, i) => rankingSection(split, data, view, i === 0 && !hasBudgets ? "third" : widthBelow)),
  ]);
}

function summaryHtml(data: Overview, view: LinkedView): Html {
  const { total, cost } = data;
  const totalGrouping = total.question.grouping;
  const main = cost ?? total;
  // Beside the figure of the month, the cost must say how many days it covers.
  const days = data.monthSoFar ? counted(dayCount(data.period), "day") : undefined;
  const figures = usedFigures(data).map(({ measure, amount, before, isCompared }) => {
    const href = usageHref(view, { metric: measure.metric, grouping: "none" });
    const title = metricName(measure.metric);
    const name = href === undefined ? title : html`<a href="${href}">${title}</a>`;
    const more = present([measure.currency !== null && days, isCompared && changeText(amount, before)]);
    const change = more.length > 0 && html`<span class="change">${more.join(", ")}</span>`;
    return html`<div><dt title="${metricMeaning(measure.metric)}">${name}</dt><dd><span class="figure">${amountHtml(amount, measure)}</span>
${change}</dd></div>\n`;
  });
  const notes = present([
    totalGrouping !== "none" && `The total is the sum of the usage by ${groupingNoun(totalGrouping)}.`,
    main.projectCount === 0 && "The total of all usage is not exported.",
    ...lackingSentences(main.lacking),
    main.total?.amount != null && whyNotCompared(main),
  ]);
  return html`<div class="summary">${monthSoFarHtml(data, view)}<dl class="figures">${figures}</dl></div>
${notes.length > 0 && html`<p class="note">${notes.join(" ")}</p>`}`;
}

/** The current month so far, unless the chosen days end in an earlier month. The sentences above the sections have its forecast. */
function monthSoFarHtml({ monthSoFar }: Overview, view: LinkedView): Html | undefined {
  const amount = monthSoFar?.answer.total?.amount;
  if (!monthSoFar || !amount) return undefined;
  const { question, total, lacking } = monthSoFar.answer;
  const href = usageHref(view && { ...view, period: { ...view.period, name: "this-month" } }, question);
  const shown = amountHtml(amount, question);
  const isWholeBefore = lacking.incompleteDaysBefore.length + lacking.unreadDaysBefore.length === 0;
  const earlier =
    isWholeBefore && total?.before && question.before
      ? html`<dd class="change">all of ${monthName(question.before.from)}: ${quantityText(total.before, question)}</dd>\n`
      : undefined;
  return html`<dl class="money"><div><dt>${metricName(question.metric)} in ${monthName(monthSoFar.period.start)} so far</dt>
<dd class="figure">${href === undefined ? shown : html`<a href="${href}">${shown}</a>`}</dd>
${earlier}</div></dl>\n`;
}

const BUDGETS_SHOWN_MAX = 6;
/** A bar of this share of the width stands for the percentage of the fullest budget, and for at least 110 %, so that each limit is in sight. */
const SCALE_WIDTH_PERCENT = 98;
const SCALE_END_MIN_PERCENT = 110;

/** The fullest budgets come first. All bars have one scale: a budget used four times has a bar four times as long as one used up. */
function budgetList(budgets: readonly BudgetUse[]): Html {
  const reach = ({ percent, forecastPercent }: BudgetUse) => Math.max(Number(percent), Number(forecastPercent));
  const shown = budgets.toSorted((a, b) => reach(b) - reach(a)).slice(0, BUDGETS_SHOWN_MAX);
  const scale = SCALE_WIDTH_PERCENT / Math.max(SCALE_END_MIN_PERCENT, ...shown.map(reach));
  const more = budgets.length - shown.length;
  return html`<ul class="budgets">${shown.map((use) => budgetItem(use, scale))}</ul>
${more > 0 && html`<p class="note">And ${counted(more, "more budget")} of which less is used.</p>`}`;
}

/** A bar has the used part, the expected part, and a mark at the limit. Its widths are attributes, as the page's policy forbids `style`. */
function budgetItem(use: BudgetUse, scale: number): Html {
  const { name, percent, forecastPercent, isNeverSeen } = use;
  const width = (share: string | null) => `${(Number(share) * scale).toFixed(1)}%`;
  const kind = Number(percent) > 100 ? "over" : Number(forecastPercent) > 100 ? "near" : "within";
  return html`<li title="${spentText(use)}"><span>${nameHtml(name)} <small>${use.period === "month" ? monthName(use.start) : dayLabel(use.start)}${use.costSource === null ? "" : `, ${use.costSource}`}</small></span>
<span>${budgetShareText(use)}${isNeverSeen && html` <b class="flag">never used</b>`}</span>
<svg class="budget ${kind}" aria-hidden="true"><rect class="expected" width="${width(forecastPercent)}" height="100%"/><rect class="used" width="${width(percent)}" height="100%"/><rect class="limit" x="${width("100")}" width="2" height="100%"/></svg></li>\n`;
}

/** The link to the page Usage & cost with the same days, narrowed to a group if one is given; undefined in the report file. */
function usageHref(view: LinkedView, asked: { metric: string; grouping: string }, group: View["pageParameters"] = {}) {
  return view && pageHref("usage", view, { grouping: asked.grouping, metric: asked.metric, ...group });
}

function groupHref(view: LinkedView, { question }: Answer, group: string | null) {
  const parameters = groupParameters(question.grouping, group);
  return parameters && usageHref(view, question, parameters);
}

function chartSection(answer: Answer, choices: readonly Answer[], view: LinkedView): Section {
  const { grouping } = answer.question;
  const links = choices.map(({ question: { grouping: one } }) => {
    const href = view ? pageHref("overview", view, { by: one }) : "";
    return [groupingNoun(one), href, one === grouping] as const;
  });
  return {
    id: "by-day-section",
    title: chartTitle(answer),
    width: "two-thirds",
    ...(view && links.length > 1 && { more: choiceList("By", links) }),
    body: answerChart(answer, {
      id: "by-day",
      hrefOf: (group) => groupHref(view, answer, group),
      othersHref: usageHref(view, answer.question),
    }),
  };
}

const ROWS_MAX = 5;

function rankingSection(answer: Answer, { total }: Overview, view: LinkedView, width: Section["width"]): Section {
  const { question, groups, other, compared, lacking } = answer;
  const { grouping, metric } = question;
  // A ranking leaves out groups that used nothing of the metric.
  const shown = groups.filter(({ amount }) => !isZero(amount ?? "0")).slice(0, ROWS_MAX);
  const all = groups.length + (other?.groups ?? 0);
  const ranking = groupTable(answer, {
    caption: `The largest ${shown.length} of ${all}, by ${metricName(metric)}`,
    groups: shown,
    hrefOf: (group) => groupHref(view, answer, group),
    titles: present([metricName(metric), compared && "Change"]),
    cells: ({ amount, before }) =>
      present([amountHtml(amount, question), compared && changeText(amount ?? "0", before ?? "0")]),
  });
  const lackingDays = lacking.unreadDays.length + lacking.incompleteDays.length;
  const hasFewerDays = lackingDays > total.lacking.unreadDays.length + total.lacking.incompleteDays.length;
  const notRead = present([
    hasFewerDays && `${counted(lackingDays, "day")} of this period`,
    lacking.projectsLeftOutCount > 0 && namesText(lacking.projectsLeftOut, lacking.projectsLeftOutCount),
  ]);
  const noun = groupingNoun(grouping);
  const overlap = !addsUp(grouping) && "A request may be in several rows: never add them up.";
  const note = notRead.length > 0 ? `Not in this list, as it was not read by ${noun}: ${notRead.join("; ")}.` : overlap;
  const href = usageHref(view, question);
  const title = capitalized(noun.endsWith("s") ? noun : `${noun}s`);
  const more = all > shown.length ? `All ${all}` : "More";
  return {
    id: `top-${grouping.replaceAll("_", "-")}`,
    title,
    width,
    ...(href !== undefined && { more: html`<a href="${href}" aria-label="${more} ${title}">${more}</a>` }),
    body: html`${ranking}${note && html`<p class="note">${note}</p>`}`,
  };
}
