// Describes the chart of an answer, which the browser draws above a table of the exact numbers. Renders the table of its groups. Pure.

import { sumOf } from "../decimal.ts";
import { type Amounts, type Answer, comparedWindow } from "../facts/answer.ts";
import { addDays, type Day, startOfDay } from "../usage/days.ts";
import { addsUp, groupingNoun } from "../usage/dimensions.ts";
import { capitalized, counted, dayLabel, exactText, inSentence, metricName, metricUnit, periodText } from "./format.ts";
import { folded, groupHtml, groupText, type Html, html, shortName, type TableRow, table, trustedHtml } from "./html.ts";

/** Describes a chart: the server writes this on the page, and the script draws it. */
export type ChartDescription = {
  /** Bars are stacked, the first series at the bottom; lines are not. */
  readonly kind: "bars" | "lines";
  /** "hours", "requests" */
  readonly unit: string;
  readonly currency: string | null;
  /** For the axis, one for each bar: "Nov 3". */
  readonly labels: readonly string[];
  /** The day or days of each bar, as "2026-11-03"; no two are equal. */
  readonly titles: readonly string[];
  /** The indexes of bars that may still change: they are lighter. */
  readonly changing: readonly number[];
  /** The indexes of bars that are not complete: they are hatched. */
  readonly incomplete: readonly number[];
  readonly series: readonly ChartSeries[];
};

export type ChartSeries = {
  /** May come from outside, so the script must escape it. */
  readonly name: string;
  /** The whole name of a group that has a label. It appears when the pointer is on the shortened name. */
  readonly hint?: string | undefined;
  /** A number from 0 is a colour of the palette; "rest": the other groups added up; "before": the period compared with, as a dashed line. */
  readonly look: number | "rest" | "before";
  /** Exact decimal texts, one for each bar; null if nothing is known. */
  readonly values: readonly (string | null)[];
  /** A page about this series only; for "rest", one with more of its groups. */
  readonly href?: string | undefined;
};

type NamedGroup = Pick<Answer["groups"][number], "group" | "label">;

/** Names a group by its label; if another group has the same label, the identifier follows in brackets. */
export function groupLabel(grouping: string, { group, label }: NamedGroup, among: readonly NamedGroup[]): string {
  if (label === null) return groupText(grouping, group);
  return among.some((one) => one.label === label && one.group !== group) ? `${label} (${group})` : label;
}

function groupCell(grouping: string, one: NamedGroup, among: readonly NamedGroup[]): Html {
  if (one.label === null) return groupHtml(grouping, one.group);
  const name = groupLabel(grouping, one, among);
  const short = shortName(name);
  // What the text does not show appears when the pointer is on it: the rest of the name, or the identifier.
  return html`<bdi title="${short === name ? (one.group ?? "") : name}">${short}</bdi>`;
}

export const GRAINS = ["day", "week", "month"] as const;
/** How many days a bar of a chart has. */
export type Grain = (typeof GRAINS)[number];

/** The link to a page of the group alone. */
type GroupHref = (group: string | null) => string | undefined;

type ChartOptions = {
  readonly id: string;
  readonly grain?: Grain;
  readonly hrefOf?: GroupHref;
  /** A page with more of the groups that "others" adds up. */
  readonly othersHref?: string | undefined;
  /** Stands below the table. */
  readonly below?: Html | undefined;
};

/** "Hours by week and model" */
export function chartTitle({ question: { metric, grouping } }: Answer, grain: Grain = "day"): string {
  return `${metricName(metric)} by ${grain}${grouping === "none" ? "" : ` and ${groupingNoun(grouping)}`}`;
}

export function answerChart(answer: Answer, options: ChartOptions): Html {
  const { id, grain = "day", below } = options;
  const { question, days } = answer;
  const bars = barsOf(days, grain);
  const series = chartSeries(answer, bars, options);
  const description: ChartDescription = {
    kind: addsUp(question.grouping) ? "bars" : "lines",
    unit: metricUnit(question.metric),
    currency: question.currency,
    labels: bars.map(({ start }) => (grain === "month" ? start.slice(0, 7) : dayLabel(start))),
    titles: bars.map((bar) => bar.title),
    changing: bars.flatMap(({ isChanging }, i) => (isChanging ? [i] : [])),
    incomplete: bars.flatMap(({ isIncomplete }, i) => (isIncomplete ? [i] : [])),
    series,
  };
  const tableSeries = series.filter(({ look }) => look !== "before");
  const rows = bars.map(({ title, isIncomplete, isChanging }, i) => {
    const incomplete = isIncomplete && html` <b class="flag">not complete</b>`;
    const day = html`<time>${title}</time>${incomplete}${isChanging && html` <small>may change</small>`}`;
    return [day, ...tableSeries.map(({ values }) => exactText(values[i] ?? "–"))];
  });
  const title = chartTitle(answer, grain);
  const caption = inSentence(title);
  const amountTitles = tableSeries.map(({ name, hint }) => ({ numbers: html`<bdi title="${hint}">${name}</bdi>` }));
  const titles = [`${capitalized(grain)} (UTC)`, ...amountTitles];
  const exact = table(`Exact ${caption}${question.currency === null ? "" : `, in ${question.currency}`}`, titles, rows);
  // Without "<" the JSON can't end the script element that it stands in.
  const json = trustedHtml(JSON.stringify(description).replaceAll("<", "\\u003c"));
  return html`<figure id="${id}-chart"><script type="application/json">${json}</script>
<figcaption><h3 id="${id}">${title}</h3></figcaption>
${folded(`Table: ${caption}`, html`${exact}${below}`)}</figure>\n`;
}

type Bars = ReturnType<typeof barsOf>;

function chartSeries(answer: Answer, bars: Bars, { hrefOf, othersHref }: ChartOptions): readonly ChartSeries[] {
  const { question, groups, other, otherByDay, beforeByDay } = answer;
  const { grouping, metric } = question;
  const sums = (amounts: readonly (string | null)[]) =>
    bars.map(({ dayIndexes }) => {
      const known = dayIndexes.flatMap((i) => amounts[i] ?? []);
      return known.length === 0 ? null : sumOf(...known);
    });
  const drawn = groups.filter(({ byDay }) => byDay).sort((a, b) => a.rank - b.rank);
  const series: ChartSeries[] = drawn.map((group, i) => {
    const name = grouping === "none" ? metricName(metric) : groupLabel(grouping, group, groups);
    const hint = group.label === null ? undefined : name;
    const shown = { name: shortName(name), hint, href: hrefOf?.(group.group) };
    return { ...shown, look: i, values: sums(group.byDay ?? []) };
  });
  if (otherByDay) {
    const name = counted(groups.length - drawn.length + (other?.groups ?? 0), "other");
    series.push({ name, look: "rest", values: sums(otherByDay), href: othersHref });
  }
  const before = comparedWindow(answer);
  if (before && beforeByDay) {
    const values = sums(beforeByDay.map(({ amount }) => amount));
    series.push({ name: `Total ${periodText(before)}`, look: "before", values });
  }
  return series;
}

function barsOf(days: Answer["days"], grain: Grain) {
  const indexed = days.map(({ day, state }, i) => ({ day, state, i }));
  return [...Map.groupBy(indexed, ({ day }) => grainStart(day, grain))].map(([grainDay, members]) => {
    const [start, end] = [members[0]?.day ?? grainDay, members.at(-1)?.day ?? grainDay];
    const states = new Set(members.map(({ state }) => state));
    // The bar of a week or month that the period contains only in part is too low, even if all of its days in the period were read.
    const isCut = start !== grainDay || grainStart(addDays(end, 1), grain) === grainDay;
    const isIncomplete = isCut || states.has("incomplete") || states.has("unread");
    const title = grain === "day" ? start : periodText({ start, end });
    const dayIndexes = members.map(({ i }) => i);
    return { start, title, dayIndexes, isChanging: states.has("settling"), isIncomplete };
  });
}

/** Weeks begin on Monday. */
function grainStart(day: Day, grain: Grain): Day {
  if (grain === "day") return day;
  if (grain === "month") return `${day.slice(0, 7)}-01`;
  return addDays(day, -((startOfDay(day).getUTCDay() + 6) % 7));
}

type TableOptions = {
  readonly caption: string;
  readonly groups: Answer["groups"];
  readonly hrefOf: GroupHref;
  /** The headings of the amounts. */
  readonly titles: TableRow;
  readonly cells: (amounts: Amounts) => TableRow;
  /** The last rows: names and amounts. */
  readonly totals?: readonly TableRow[];
};

/** A table of the given groups, each with a bar whose length is in proportion to its amount. */
export function groupTable(answer: Answer, { caption, groups, hrefOf, titles, cells, totals }: TableOptions): Html {
  const { grouping } = answer.question;
  const largest = Math.max(0, ...groups.map(({ amount }) => Number(amount ?? "0")));
  const rows = groups.map((one) => {
    const href = hrefOf(one.group);
    const name = grouping === "none" ? "Total" : groupCell(grouping, one, answer.groups);
    const title = groupLabel(grouping, one, answer.groups);
    const share = Number(one.amount ?? "0") / largest;
    // A credit has no bar. The width is an attribute, because the page's policy forbids `style` attributes.
    const hasBar = groups.length > 1 && share >= 0;
    const bar =
      hasBar &&
      html`<svg class="share" aria-hidden="true"><rect width="${Math.max(0.5, share * 100).toFixed(1)}%" height="100%"/></svg>`;
    const linkedName = href === undefined ? name : html`<a href="${href}" title="${title}">${name}</a>`;
    return [html`${linkedName}${bar}`, ...cells(one)];
  });
  const noun = grouping === "none" ? "" : capitalized(groupingNoun(grouping));
  const columns = [noun, ...titles.map((numbers) => ({ numbers }))];
  return table(caption, columns, rows, totals);
}
