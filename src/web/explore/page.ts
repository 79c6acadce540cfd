// The page Usage: the answer to a question as a chart with its tables, and the links that change the question. Pure.

import { daysChart } from "../../report/chart.ts";
import type { ChartSeries, DayMark } from "../../report/chart-description.ts";
import { changeText, counted, daysHtml, exactText, headlineText, metricName, windowText } from "../../report/format.ts";
import {
  columns,
  folded,
  groupHtml,
  type Html,
  type HtmlValue,
  html,
  joinHtml,
  nameHtml,
  numberColumns,
  sqlHtml,
  table,
} from "../../report/html.ts";
import type { Section } from "../../report/page.ts";
import { METRICS } from "../../usage/metrics.ts";
import { GROUPINGS } from "../../usage/series.ts";
import type { PageContent } from "../dashboard/pages.ts";
import { type View, viewQuery } from "../dashboard/view.ts";
import type { Answer } from "./answer.ts";
import { addsUp, CHART_KINDS } from "./question.ts";

type ChartKind = (typeof CHART_KINDS)[number];

export function usageContent(answer: Answer, view: View, kind: ChartKind): PageContent {
  const { question, projectCount, groups } = answer;
  const { metric, grouping } = question;
  const link = linker(view);
  const choices = choicesHtml(answer, link, kind);
  const by = grouping === "none" ? "by day" : `by ${nounOf(grouping)}`;
  if (projectCount === 0)
    return { sections: [section("usage", `No usage ${by}`, html`${choices}${nothingExported(answer, link)}`)] };
  const hasUsage = groups.length > 0;
  const shown = hasUsage
    ? html`${chartHtml(answer, link, kind)}${groupsTable(answer, link)}`
    : nothingUsed(answer, link);
  const body = html`${choices}${narrowedHtml(answer, link)}${totalHtml(answer)}${lackingHtml(answer)}${shown}${downloads(answer, view, "groups")}${sqlHtml(answer.sql.groups)}`;
  return {
    sections: [section("usage", `${metricName(metric)} ${by}`, body), ...(hasUsage ? [daysSection(answer, view)] : [])],
  };
}

function section(id: string, title: string, body: Html): Section {
  return { id, title, body };
}

/** A relative link to the same question with these changes; undefined takes a parameter away. */
type Link = (changes: Readonly<Record<string, string | undefined>>) => string;

function linker(view: View): Link {
  return (changes) => {
    const parameters = { ...Object.fromEntries(view.more ?? []), ...changes };
    const more = Object.entries(parameters).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    return `./usage${viewQuery(view, { more })}`;
  };
}

function nounOf(grouping: string): string {
  return grouping.replaceAll("_", " ");
}

/** More filters are not listed. */
const FILTERS_MAX = 50;
/** Another grouping has other groups, so the question is then no longer narrowed to one. */
const EVERY_GROUP = { group: undefined, "no-value": undefined };

type Choice = readonly [text: HtmlValue, href: string, isCurrent: boolean];

function choicesHtml({ question, available }: Answer, link: Link, kind: ChartKind): Html {
  const { metric, grouping, filter } = question;
  const groupings = GROUPINGS.filter((one) => one === grouping || available.groupings.includes(one));
  const filters = [...new Set([...(filter === null ? [] : [filter]), ...available.filters])].slice(0, FILTERS_MAX);
  return html`<div class="toolbar">${choiceList(
    "Metric",
    METRICS.map((one) => [metricName(one), link({ metric: one }), one === metric]),
  )}${choiceList(
    "Grouping",
    groupings.map((one) => {
      const href = link({ ...EVERY_GROUP, grouping: one, limit: undefined });
      return [one === "none" ? "in all" : `by ${nounOf(one)}`, href, one === grouping];
    }),
  )}${choiceList(
    "Filter",
    filters.length === 0
      ? []
      : [
          ["all usage", link({ filter: undefined }), filter === null],
          ...filters.map((one): Choice => [nameHtml(one), link({ filter: one }), one === filter]),
        ],
  )}${choiceList("Chart", addsUp(grouping) ? CHART_KINDS.map((one) => [one, link({ chart: one }), one === kind]) : [])}</div>
`;
}

function choiceList(label: string, choices: readonly Choice[]): Html | undefined {
  if (choices.length === 0) return undefined;
  const items = choices.map(
    ([text, href, isCurrent]) =>
      html`<li><a href="${href}"${isCurrent ? html` aria-current="true"` : undefined}>${text}</a></li>`,
  );
  return html`<ul class="choices" aria-label="${label}">${items}</ul>
`;
}

function narrowedHtml({ question: { group, grouping } }: Answer, link: Link): Html | undefined {
  if (group === null) return undefined;
  const noun = nounOf(grouping);
  return html`<p>Only ${noun} ${groupHtml(grouping, group.value)} · <a href="${link(EVERY_GROUP)}">show every ${noun}</a></p>
`;
}

function totalHtml({ total, groups, question }: Answer): Html | undefined {
  // A single group is its own total, also where groups do not add up.
  const sum = total ?? (question.group === null ? undefined : groups[0]);
  if (!sum || sum.amount === null) return undefined;
  const { metric, before } = question;
  const exact = exactText(sum.amount);
  const headline = headlineText(sum.amount);
  const change =
    before === null
      ? undefined
      : html` <span class="change">${changeText(sum.amount, sum.before)}${
          sum.before === null ? undefined : html` (${exactText(sum.before)})`
        } compared with ${windowText({ start: before.from, end: before.to })}</span>`;
  return html`<dl class="figures"><div><dt>${metricName(metric)}</dt><dd><span class="figure">${headline}</span>${
    headline === exact ? undefined : html` <span class="exact">${exact}</span>`
  }${change}</dd></div></dl>
`;
}

const GAP_TEXTS = {
  missing: "missing",
  failed: "failed",
  suspect: "in doubt",
  open: "read before the day was over",
} as const;

/** What the numbers lack. It is said above them, because a number that is too low looks like any other. */
function lackingHtml({ complete, lacking, days, question }: Answer): Html {
  const { incompleteDays, unreadDays, incompleteDaysBefore, unreadDaysBefore, gaps } = lacking;
  const { projectsLeftOut, projectsLeftOutCount, projectsEnded, projectsEndedCount } = lacking;
  const settling = days.filter(({ state }) => state === "settling").map(({ day }) => day);
  const before = incompleteDaysBefore.length + unreadDaysBefore.length;
  const notes = [
    ...(incompleteDays.length > 0
      ? [html`<b class="flag">Too low on ${daysHtml(incompleteDays)}</b> (hatched): not all of it could be read.`]
      : []),
    ...gaps.map(
      ({ project, status, from, to, days: count, error }) =>
        html`${nameHtml(project)}: ${GAP_TEXTS[status]} on ${counted(count, "day")} (${windowText({ start: from, end: to })})${
          error === null ? undefined : html`: <bdi>${error}</bdi>`
        }`,
    ),
    ...(unreadDays.length > 0
      ? [
          html`Some usage was not read (dotted) on ${daysHtml(unreadDays)}: the day is before a series began, or not due yet.`,
        ]
      : []),
    ...(projectsLeftOutCount > 0
      ? [html`Not included, as not exported like this: ${projectNames(projectsLeftOut, projectsLeftOutCount)}.`]
      : []),
    ...(projectsEndedCount > 0
      ? [
          html`Included only in part, as no longer exported like this: ${projectNames(projectsEnded, projectsEndedCount)}.${
            question.before === null ? undefined : " So the changes mean little."
          }`,
        ]
      : []),
    ...(question.before !== null && before > 0
      ? [html`The compared period lacks usage on ${counted(before, "day")}, so the changes mean little.`]
      : []),
  ];
  const mayChange =
    settling.length > 0
      ? html`<p class="note">May still change, as it is still read again: ${daysHtml(settling)}.</p>
`
      : undefined;
  if (notes.length === 0) return html`${mayChange}`;
  return html`<div class="notice ${complete ? "none" : "bad"}"><ul>${notes.map((note) => html`<li>${note}</li>`)}</ul></div>
${mayChange}`;
}

function projectNames(names: readonly string[], count: number): Html {
  const more = count > names.length ? ` and ${counted(count - names.length, "more project")}` : undefined;
  return html`${joinHtml(names.map(nameHtml), ", ")}${more}`;
}

function nothingExported({ available, question: { grouping, filter } }: Answer, link: Link): Html {
  const others = available.groupings.filter((one) => one !== grouping);
  const next =
    others.length > 0
      ? html`Exported are: ${joinHtml(
          others.map((one) => html`<a href="${link({ ...EVERY_GROUP, grouping: one })}">${one}</a>`),
          ", ",
        )}.`
      : html`Add the grouping to <code>exports[].groupings</code> of the configuration, and run <code>usage-export backfill</code> for the days before.`;
  return html`<p class="empty">No usage by ${grouping}${filter === null ? undefined : html` under the filter ${nameHtml(filter)}`} is exported. ${next}</p>
`;
}

function nothingUsed({ question: { metric } }: Answer, link: Link): Html {
  const others = METRICS.filter((one) => one !== metric).map(
    (one) => html`<a href="${link({ metric: one })}">${metricName(one)}</a>`,
  );
  return html`<p class="empty">No usage in this metric: the service sent none, or 0. Others are ${joinHtml(others, ", ")}.</p>
`;
}

function chartHtml(answer: Answer, link: Link, kind: ChartKind): Html {
  const { question, days, groups, otherByDay, beforeByDay, lacking } = answer;
  const { metric, grouping, before } = question;
  const drawn = groups.toSorted((a, b) => a.rank - b.rank).flatMap((group) => (group.byDay ? [group] : []));
  const series: ChartSeries[] = drawn.map(({ group, byDay = [] }, i) => ({
    name: grouping === "none" ? metricName(metric) : groupText(group),
    look: i,
    values: byDay,
    href: narrowed(answer, group, link),
  }));
  if (otherByDay) series.push({ name: "other", look: "rest", values: otherByDay, href: moreGroups(answer, link) });
  if (before && beforeByDay) {
    const name = `${windowText({ start: before.from, end: before.to })}, in all`;
    series.push({
      ...{ name, look: "before", values: beforeByDay.map(({ amount }) => amount) },
      days: beforeByDay.map(({ day }) => day),
    });
  }
  const marks: readonly DayMark[] = [
    { label: "not complete", days: lacking.incompleteDays, pattern: "hatched" },
    { label: "not read", days: lacking.unreadDays, pattern: "dotted" },
  ];
  return daysChart(
    "usage-by-day",
    `${metricName(metric)} by day${grouping === "none" ? "" : ` and ${grouping}`}`,
    {
      kind: addsUp(grouping) ? kind : "lines",
      unit: metricName(metric).toLowerCase(),
      days: days.map(({ day }) => day),
      series,
      marks: marks.filter((mark) => mark.days.length > 0),
    },
    html``,
  );
}

/** A set as its members with commas. */
function groupText(group: string | null): string {
  if (group === null) return "no value";
  try {
    const value: unknown = JSON.parse(group);
    if (Array.isArray(value)) return value.length === 0 ? "none" : value.map((one) => one ?? "no value").join(", ");
  } catch {}
  return group;
}

/** Undefined where it is narrowed already. A blank name can't be asked for, as an empty parameter counts as left out. */
function narrowed(
  { question: { grouping, group: only } }: Answer,
  group: string | null,
  link: Link,
): string | undefined {
  if (grouping === "none" || only !== null || group === "") return undefined;
  return group === null ? link({ "no-value": "yes", group: undefined }) : link({ group, "no-value": undefined });
}

const LIMITS = [100, 1_000];

/** Undefined if no more can be listed. */
function moreGroups({ question: { limit } }: Answer, link: Link): string | undefined {
  const more = LIMITS.find((one) => one > limit);
  return more === undefined ? undefined : link({ limit: String(more) });
}

function groupsTable(answer: Answer, link: Link): Html {
  const { question, groups, other, total } = answer;
  const { grouping, metric, before, sort } = question;
  const heading = (title: string, by: string) =>
    html`<a href="${link({ sort: by === "amount" ? undefined : by })}"${by === sort ? html` aria-current="true"` : undefined}>${title}</a>`;
  const titles = [
    ...columns(grouping === "none" ? "Total" : heading(grouping, "group")),
    ...numberColumns(heading(metricName(metric), "amount")),
    ...(before ? numberColumns(heading("Before", "before"), heading("Difference", "change"), "Change") : []),
  ];
  const cells = ({ amount, before: earlier, change }: Answer["groups"][number] | NonNullable<Answer["other"]>) => [
    amountText(amount),
    ...(before ? [amountText(earlier), amountText(change), amount === null ? "" : changeText(amount, earlier)] : []),
  ];
  const rows = groups.map((one) => {
    const href = narrowed(answer, one.group, link);
    const name = grouping === "none" ? "all usage" : groupHtml(grouping, one.group);
    return [href === undefined ? name : html`<a href="${href}">${name}</a>`, ...cells(one)];
  });
  // A request may count in several of them.
  const otherCells = (sum: NonNullable<Answer["other"]>) =>
    addsUp(grouping) ? cells(sum) : ["not added up", ...(before ? ["", "", ""] : [])];
  const more = moreGroups(answer, link);
  const others = other ? counted(other.groups, "other", "others") : "";
  const totals = [
    ...(other ? [[more === undefined ? others : html`<a href="${more}">${others}</a>`, ...otherCells(other)]] : []),
    ...(total && grouping !== "none" && question.group === null ? [["Total", ...cells({ groups: 0, ...total })]] : []),
  ];
  return table(`${metricName(metric)} by ${grouping}, exact`, titles, rows, { totals });
}

function amountText(amount: string | null): string {
  return amount === null ? "none" : exactText(amount);
}

function daysSection(answer: Answer, view: View): Section {
  const { question, groups, days, otherByDay, sql } = answer;
  const { grouping, metric } = question;
  const drawn = groups
    .toSorted((a, b) => a.rank - b.rank)
    .flatMap(({ group, byDay }) => (byDay ? [{ group, byDay }] : []));
  const titles = [
    ...columns("Day (UTC)"),
    ...numberColumns(
      ...drawn.map(({ group }) => (grouping === "none" ? metricName(metric) : groupHtml(grouping, group))),
      ...(otherByDay ? ["other"] : []),
    ),
  ];
  const rows = days.map(({ day, state }, i) => [
    html`<time>${day}</time>${STATE_FLAGS[state]}`,
    ...[...drawn.map(({ byDay }) => byDay), ...(otherByDay ? [otherByDay] : [])].map((amounts) =>
      amountText(amounts[i] ?? null),
    ),
  ]);
  const caption = `${metricName(metric)} by day, exact`;
  const body = html`${folded("Table by day", table(caption, titles, rows, { sortable: true }))}${downloads(answer, view, "days")}${sqlHtml(sql.days)}`;
  return section("by-day", "By day", body);
}

const STATE_FLAGS = {
  final: undefined,
  settling: html` <small>may change</small>`,
  incomplete: html` <b class="flag">not complete</b>`,
  unread: html` <b class="flag">not read</b>`,
};

/** The link names the days, so that the file holds what the page shows also when it is loaded tomorrow. */
function downloads({ question: { from, to } }: Answer, view: View, rows: string): Html {
  const period = { start: from, end: to, live: false, name: undefined };
  const more = (view.more ?? []).filter(([name]) => name !== "chart");
  const csv = viewQuery(view, { period, more: [...more, ["rows", rows]] });
  return html`<p class="links"><a href="api/v1/usage.csv${csv}" download>Download CSV</a> · <a href="api/v1/usage${viewQuery(view, { period, more })}">JSON</a></p>
`;
}
