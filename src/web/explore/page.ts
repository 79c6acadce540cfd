// The page Usage & cost: the answer to a question as a chart with its tables, and the links that change the question. Pure.

import type { Answer } from "../../facts/answer.ts";
import type { Change } from "../../facts/changes.ts";
import { isCost } from "../../facts/question.ts";
import { answerChart, groupCell, nameOf, shareBar, titleOf, unitOf } from "../../show/answer-chart.ts";
import { changeHtml } from "../../show/change-section.ts";
import {
  changeText,
  chartNumber,
  counted,
  exactText,
  headlineText,
  moneyText,
  periodHtml,
  roundedText,
  shortText,
} from "../../show/format.ts";
import { columns, groupHtml, type Html, html, nameHtml, numberColumns, sqlHtml, table } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import type { Window } from "../../usage/days.ts";
import { addsUp, groupingNoun } from "../../usage/dimensions.ts";
import type { PageContent } from "../dashboard/pages.ts";
import { fixedView, type View, viewQuery } from "../dashboard/view.ts";
import { type ChartKind, controlsOf, EVERY_GROUP, groupingLinks, kindLinks, type Link, linker } from "./choices.ts";
import { emptyHtml, lackingHtml } from "./lacking.ts";

type Group = Answer["groups"][number];
type Amounts = Pick<Group, "amount" | "before" | "change">;

export function usageContent(answer: Answer, change: Change | undefined, view: View, kind: ChartKind): PageContent {
  const { question, projectCount, groups } = answer;
  const link = linker(view);
  const empty = emptyHtml(answer, link);
  const isKnown = projectCount > 0 && (!isCost(question.metric) || question.currency !== null);
  const shown = html`${isKnown ? html`${totalHtml(answer)}${lackingHtml(answer)}` : undefined}${empty}${
    groups.length > 0 ? chartHtml(answer, view, kind) : undefined
  }`;
  const body = html`<div class="toolbar">${groupingLinks(answer, link)}${kindLinks(answer, link, kind)}</div>
${narrowedHtml(answer, link)}${shown}`;
  const by = question.grouping === "none" ? "" : `by ${groupingNoun(question.grouping)}`;
  return {
    controls: controlsOf(answer),
    sections: [
      { id: "usage", title: `${titleOf(question)} ${by}`.trim(), body },
      ...(isKnown ? [groupsSection(answer, view, change !== undefined)] : []),
      ...(change ? [{ id: "why", title: "What changed", body: changeHtml(change), width: "third" as const }] : []),
    ],
  };
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
  const span = (window: Window) => html`<span class="change">${periodHtml(window)}</span>`;
  const ofPeriod = html`${exactBeside(sum.amount)}${span({ start: from, end: to })}`;
  const figures = [figureHtml(titleOf(question), shortText(sum.amount, question), ofPeriod)];
  if (before && sum.before !== null && sum.change !== null) {
    const ofBefore = html`${exactBeside(sum.before)}${span({ start: before.from, end: before.to })}`;
    const difference = html`<span class="exact">${signed(exactText(sum.change))} ${unitOf(question)}</span>`;
    figures.push(figureHtml("Before", shortText(sum.before, question), ofBefore));
    figures.push(figureHtml("Change", changeText(sum.amount, sum.before), difference));
  }
  return html`<dl class="figures few">${figures}</dl>
`;
}

/** The exact amount, if the headline rounds it. */
function exactBeside(amount: string): Html | undefined {
  return headlineText(amount) === exactText(amount)
    ? undefined
    : html` <data class="exact" value="${amount}">${exactText(amount)}</data>`;
}

function figureHtml(title: string, figure: string, more: Html | undefined): Html {
  return html`<div><dt>${title}</dt><dd><span class="figure">${figure}</span>${more}</dd></div>
`;
}

function signed(amount: string): string {
  return amount.startsWith("-") || amount === "0" ? amount : `+${amount}`;
}

function chartHtml(answer: Answer, view: View, kind: ChartKind): Html {
  const { question } = answer;
  const link = linker(view);
  return answerChart(answer, {
    id: "usage-by-day",
    title: `${titleOf(question)} by day${question.grouping === "none" ? "" : ` and ${groupingNoun(question.grouping)}`}`,
    kind,
    hrefOf: (group) => narrowed(answer, group, link),
    othersHref: moreGroups(answer, link),
    below: downloads(answer, view, "days"),
  });
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

function groupsSection(answer: Answer, view: View, hasNeighbour: boolean): Section {
  const { groups, question } = answer;
  const table = groups.length > 0 ? groupsTable(answer, linker(view)) : undefined;
  const title = question.grouping === "none" ? "Total" : `By ${groupingNoun(question.grouping)}`;
  return {
    ...{ id: "groups", title, width: hasNeighbour ? "two-thirds" : undefined },
    body: html`${table}${downloads(answer, view, "groups")}`,
  };
}

function groupsTable(answer: Answer, link: Link): Html {
  const { question, groups, other, total, compared } = answer;
  const { grouping, sort } = question;
  const heading = (title: string, by: string) =>
    html`<a href="${link({ sort: by === "amount" ? undefined : by })}"${by === sort ? html` aria-current="true"` : undefined}>${title}</a>`;
  const noun = groupingNoun(grouping);
  const titles = [
    ...columns(grouping === "none" ? "" : heading(`${noun.charAt(0).toUpperCase()}${noun.slice(1)}`, "group")),
    ...numberColumns(heading(titleOf(question), "amount")),
    ...(compared ? numberColumns(heading("Before", "before"), heading("Difference", "change"), "Change") : []),
  ];
  const cells = ({ amount, before: earlier, change }: Amounts) => [
    amountCell(amount, question),
    ...(compared
      ? [
          amountCell(earlier, question),
          amountCell(earlier === null ? null : change, question, signed),
          amount === null ? "–" : changeText(amount, earlier),
        ]
      : []),
  ];
  const largest = Math.max(...groups.map(({ amount }) => chartNumber(amount ?? "0")));
  const rows = listed(answer).map((one) => {
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
  const by = grouping === "none" ? "" : ` by ${noun}`;
  return html`<div class="ranks">${table(`${titleOf(question)}${by}, rounded`, titles, rows, { totals })}</div>
`;
}

/** By name means by the name that is shown. */
function listed(answer: Answer): readonly Group[] {
  const { groups, question } = answer;
  if (question.sort !== "group" || groups.every(({ label }) => label === null)) return groups;
  return groups.toSorted((a, b) =>
    nameOf(question.grouping, a, groups).localeCompare(nameOf(question.grouping, b, groups), "en", { numeric: true }),
  );
}

function amountCell(amount: string | null, question: Answer["question"], shown = (text: string) => text): Html {
  if (amount === null) return html`<span title="not known: not sent, or not read">–</span>`;
  const text = question.currency === null ? roundedText(amount) : moneyText(amount, question.currency);
  return html`<data value="${amount}" title="${exactText(amount)} ${unitOf(question)}">${shown(text)}</data>`;
}

/** The links name the days, so that the file holds what the page shows also when it is loaded tomorrow. */
function downloads({ sql }: Answer, view: View, rows: "groups" | "days"): Html {
  const fixed = fixedView(view);
  const more = (view.more ?? []).filter(([name]) => name !== "chart");
  const csv = viewQuery(fixed, { more: [...more, ["rows", rows]] });
  const json = rows === "groups" ? html` · <a href="api/v1/usage${viewQuery(fixed, { more })}">JSON</a>` : undefined;
  return html`<p class="links"><a href="api/v1/usage.csv${csv}" download>Download CSV</a>${json}</p>
${sqlHtml(sql[rows])}`;
}
