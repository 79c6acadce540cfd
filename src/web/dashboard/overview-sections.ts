// What the overview and the report file show: what usage costs, how much was used, of what and by whom, on one screen. Everything leads to the
// page Usage & cost, which says more; in a file nothing leads anywhere. Pure.

import type { Answer } from "../../facts/answer.ts";
import type { Overview } from "../../facts/overview.ts";
import { answerChart, groupCell, nameOf, shareBar } from "../../show/answer-chart.ts";
import { budgetList } from "../../show/budgets.ts";
import {
  amountHtml,
  changeText,
  chartNumber,
  counted,
  estimateText,
  isZero,
  type Measure,
  metricName,
  monthName,
  quantityText,
} from "../../show/format.ts";
import { columns, type Html, html, joinHtml, numberColumns, table } from "../../show/html.ts";
import { leftOutNotes, projectNames } from "../../show/lacking.ts";
import { wholeBudget } from "../../show/sentence.ts";
import type { BudgetUse } from "../../usage/budgets.ts";
import { addsUp, groupingNoun } from "../../usage/dimensions.ts";
import { type View, viewQuery } from "../question.ts";
import type { Section } from "./document.ts";
import { pageHref } from "./frame.ts";

/** Left out, nothing leads anywhere. */
type Links = { readonly view: View } | undefined;

/** `drawn` is the grouping of the chart; left out, it is the first split. */
export function overviewSections(
  data: Overview,
  budgets: readonly BudgetUse[],
  links: Links,
  drawn?: string,
): readonly Section[] {
  const main = data.cost ?? data.total;
  const ofMain = data.splits.filter(
    ({ question, groups }) => question.metric === main.question.metric && groups.length > 0,
  );
  const chart = ofMain.find(({ question }) => question.grouping === drawn) ?? ofMain[0] ?? main;
  const hasBudgets = budgets.length > 0;
  const splits = data.splits.filter(({ groups }) => groups.some(({ amount }) => !isZero(amount ?? "0")));
  const others = splits.length - (hasBudgets ? 0 : 1);
  return [
    { id: "summary", title: "In short", body: summaryHtml(data, budgets, links), quiet: true },
    ...(chart.groups.length > 0 ? [chartSection(chart, ofMain, links)] : []),
    ...(hasBudgets ? [budgetsSection(budgets)] : []),
    // Beside the chart is the first ranking, if there are no budgets.
    ...splits.map((split, i) =>
      rankingSection(split, data, links, (i === 0 && !hasBudgets) || others <= 3 ? "third" : "quarter"),
    ),
  ];
}

// The figures.

function summaryHtml(data: Overview, budgets: readonly BudgetUse[], links: Links): Html {
  const { figures, total, cost, totalFrom } = data;
  const main = cost ?? total;
  const { projectCount } = main;
  const used = figures.filter(({ amount }) => !isZero(amount));
  const [first, ...others] = used.map(({ metric, amount, before: earlier }) =>
    figureHtml(
      { metric, currency: null },
      amount,
      total.compared ? earlier : undefined,
      usageHref(links, { metric, grouping: "none" }),
    ),
  );
  const ofCost = cost?.total?.amount
    ? figureHtml(
        cost.question,
        cost.total.amount,
        cost.compared ? cost.total.before : undefined,
        usageHref(links, cost.question),
      )
    : undefined;
  const notes = [
    ...(totalFrom === "none" ? [] : [html`The figures are the sums by ${groupingNoun(totalFrom)}.`]),
    ...(projectCount === 0 ? [html`No total of all usage is exported.`] : []),
    ...leftOutNotes(main),
  ];
  return html`<div class="summary">${moneyHtml(data, budgets, links)}<dl class="figures">${ofCost ?? first}${ofCost && first}${others}</dl></div>
${notes.length > 0 ? html`<p class="note">${joinHtml(notes, " ")}</p>` : undefined}`;
}

/** The month, whatever days are chosen: people are asked for it. */
function moneyHtml({ money }: Overview, budgets: readonly BudgetUse[], links: Links): Html | undefined {
  const amount = money?.total.total?.amount;
  if (!money || !amount) return undefined;
  const { question, total, lacking } = money.total;
  const whole = wholeBudget(money.total, budgets);
  const forecast = whole?.forecast
    ? { forecast: whole.forecast, low: whole.forecastLow ?? whole.forecast, high: whole.forecastHigh ?? whole.forecast }
    : money.forecast;
  const href = usageHref(links, question, { ...THIS_MONTH });
  const isWholeBefore = lacking.incompleteDaysBefore.length + lacking.unreadDaysBefore.length === 0;
  const shown = html`${amountHtml(amount, question)}`;
  return html`<dl class="money"><div><dt>${metricName(question.metric)} in ${monthName(money.period.start)} so far</dt>
<dd class="figure">${href === undefined ? shown : html`<a href="${href}">${shown}</a>`}</dd>
${
  forecast
    ? html`<dd>heading for <b>${estimateText(forecast.forecast, question)}</b> <span class="change">${estimateText(forecast.low, question)} to ${estimateText(forecast.high, question)}</span></dd>
`
    : undefined
}${
  isWholeBefore && total?.before && question.before
    ? html`<dd class="change">${monthName(question.before.from)}: ${quantityText(total.before, question)}</dd>
`
    : undefined
}</div></dl>
`;
}

const THIS_MONTH = { period: { name: "this-month" } };

function figureHtml(
  measure: Measure,
  amount: string,
  before: string | null | undefined,
  href: string | undefined,
): Html {
  const shown = amountHtml(amount, measure);
  const change = before === undefined ? undefined : html`<span class="change">${changeText(amount, before)}</span>`;
  return html`<div><dt>${href === undefined ? metricName(measure.metric) : html`<a href="${href}">${metricName(measure.metric)}</a>`}</dt><dd><span class="figure">${shown}</span>
${change}</dd></div>
`;
}

// The groups.

type Asked = { readonly metric: string; readonly grouping?: string };

/** The page Usage & cost, with the same days. */
function usageHref(
  links: Links,
  { metric, grouping = "none" }: Asked,
  changes: object = {},
  group: object = {},
): string | undefined {
  const more = Object.entries<string>({ grouping, metric, ...group });
  return links && `${pageHref("usage")}${viewQuery(links.view, { ...changes, more })}`;
}

/** Narrowed to a group. Undefined for a blank name: an empty parameter counts as left out. */
function groupHref(links: Links, { question }: Answer, group: string | null): string | undefined {
  if (group === "" || question.grouping === "none") return undefined;
  return usageHref(links, question, {}, group === null ? { "no-value": "yes" } : { group });
}

function chartSection(answer: Answer, choices: readonly Answer[], links: Links): Section {
  const { grouping } = answer.question;
  const by = grouping === "none" ? "" : ` and ${groupingNoun(grouping)}`;
  const title = `${metricName(answer.question.metric)} by day${by}`;
  const others = choices.map(({ question }) => {
    const href = links && `${pageHref("overview")}${viewQuery(links.view, { more: [["by", question.grouping]] })}`;
    const isShown = question.grouping === grouping;
    return html`<li><a href="${href ?? ""}"${isShown ? html` aria-current="true"` : undefined}>${groupingNoun(question.grouping)}</a></li>`;
  });
  return {
    ...{ id: "by-day-section", title, width: "two-thirds" },
    ...(links && choices.length > 1 && { more: html`<ul class="choices" aria-label="By">${others}</ul>` }),
    body: answerChart(answer, {
      ...{ id: "by-day", title },
      hrefOf: (group) => groupHref(links, answer, group),
      othersHref: usageHref(links, answer.question),
    }),
  };
}

const ROWS_MAX = 5;
const TITLES: Readonly<Record<string, string>> = {
  project: "Projects",
  line_item: "Line items",
  model: "Models",
  accessor: "API keys",
  tags: "Tags",
};

function rankingSection(answer: Answer, { total }: Overview, links: Links, width: "quarter" | "third"): Section {
  const { question, groups, other, compared, lacking } = answer;
  const { grouping } = question;
  // Groups with nothing of the metric say nothing about its ranks.
  const shown = groups.filter(({ amount }) => !isZero(amount ?? "0")).slice(0, ROWS_MAX);
  const largest = chartNumber(shown[0]?.amount ?? "0");
  const rows = shown.map((group) => {
    const href = groupHref(links, answer, group.group);
    const name = groupCell(grouping, group, groups);
    const whole = nameOf(grouping, group, groups);
    return [
      html`${shareBar(chartNumber(group.amount ?? "0") / largest)}${href === undefined ? name : html`<a href="${href}" title="${whole}">${name}</a>`}`,
      amountHtml(group.amount ?? "0", question),
      ...(compared ? [changeText(group.amount ?? "0", group.before ?? "0")] : []),
    ];
  });
  const all = groups.length + (other?.groups ?? 0);
  const noun = groupingNoun(grouping);
  const caption = `The largest ${shown.length} of ${all}, by ${metricName(question.metric)}`;
  const titles = [
    ...columns(`${noun.charAt(0).toUpperCase()}${noun.slice(1)}`),
    ...numberColumns(metricName(question.metric), ...(compared ? ["Change"] : [])),
  ];
  const days = lacking.unreadDays.length + lacking.incompleteDays.length;
  const fewer = days > total.lacking.unreadDays.length + total.lacking.incompleteDays.length;
  const notes = [
    ...(fewer ? [`${counted(days, "day")} of this period`] : []),
    ...(lacking.projectsLeftOutCount > 0 ? [projectNames(lacking.projectsLeftOut, lacking.projectsLeftOutCount)] : []),
  ];
  const note =
    notes.length > 0
      ? html`<p class="note">Not read by ${noun}, so not in these figures: ${joinHtml(notes, "; ")}.</p>`
      : addsUp(grouping)
        ? undefined
        : html`<p class="note">A request with several tags counts for each.</p>`;
  const href = usageHref(links, question);
  const title = TITLES[grouping] ?? grouping;
  const more = all > shown.length ? `All ${all}` : "More";
  return {
    ...{ id: `top-${grouping.replaceAll("_", "-")}`, title, width },
    ...(href !== undefined && {
      more: html`<a href="${href}" aria-label="${more} ${title}">${more}</a>`,
    }),
    body: html`${table(caption, titles, rows)}${note}`,
  };
}

function budgetsSection(budgets: readonly BudgetUse[]): Section {
  return { id: "budgets", title: "Budgets", width: "third", body: budgetList(budgets) };
}
