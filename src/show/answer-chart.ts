// A chart of amounts by day, which the browser draws, above the table of its exact numbers. Pure.

import type { Answer } from "../facts/answer.ts";
import type { Day } from "../usage/days.ts";
import { addsUp } from "../usage/dimensions.ts";
import { METRIC_TABLE } from "../usage/metrics.ts";
import { type ChartDescription, type ChartSeries, type DayMark, encodeDescription } from "./chart-description.ts";
import { counted, daysHtml, exactText, metricName, periodText } from "./format.ts";
import { columns, folded, groupHtml, groupText, type Html, html, nameHtml, numberColumns, table } from "./html.ts";

type Group = Pick<Answer["groups"][number], "group" | "label">;

const UNITS: ReadonlyMap<string, string> = new Map(METRIC_TABLE.map(({ name, unit }) => [name, unit]));

export function unitOf({ metric, currency }: Pick<Answer["question"], "metric" | "currency">): string {
  return currency ?? UNITS.get(metric) ?? "";
}

export function titleOf({ metric }: { readonly metric: string }): string {
  return metricName(metric);
}

/** An API key by its comment and a project by its name, if no other of the groups has the same. */
export function nameOf(grouping: string, { group, label }: Group, among: readonly Group[]): string {
  if (label === null) return groupText(grouping, group);
  return among.some((one) => one.label === label && one.group !== group) ? `${label} (${group})` : label;
}

export function groupCell(grouping: string, one: Group, among: readonly Group[]): Html {
  if (one.label === null) return groupHtml(grouping, one.group);
  return html`<bdi title="${one.group ?? ""}">${nameOf(grouping, one, among)}</bdi>`;
}

type ChartOptions = {
  readonly id: string;
  readonly title: string;
  readonly kind: ChartDescription["kind"];
  /** Leads to a group alone, and to more of the others. */
  readonly hrefOf?: (group: string | null) => string | undefined;
  readonly othersHref?: string | undefined;
  /** Stands below the table. */
  readonly below?: Html | undefined;
};

/** A group of the chart, or the others together. `heading` is its column in the table. */
type Layer = ChartSeries & { readonly heading: Html };

export function answerChart(answer: Answer, { id, title, kind, hrefOf, othersHref, below }: ChartOptions): Html {
  const { question, days, groups, other, otherByDay, beforeByDay, lacking, compared } = answer;
  const { grouping, before } = question;
  const drawn = groups.filter(({ byDay }) => byDay).sort((a, b) => a.rank - b.rank);
  const layers: Layer[] = drawn.map((group, i) => ({
    name: grouping === "none" ? titleOf(question) : nameOf(grouping, group, groups),
    hint: group.label === null ? undefined : (group.group ?? undefined),
    heading: grouping === "none" ? html`${titleOf(question)}` : groupCell(grouping, group, groups),
    look: i,
    values: group.byDay ?? [],
    href: hrefOf?.(group.group),
  }));
  if (otherByDay) {
    const name = counted(groups.length - drawn.length + (other?.groups ?? 0), "other");
    layers.push({ name, heading: html`<i>${name}</i>`, look: "rest", values: otherByDay, href: othersHref });
  }
  // A month may have fewer days than the one before.
  const earlier = beforeByDay?.slice(0, days.length);
  const line: ChartSeries[] =
    compared && before && earlier
      ? [
          {
            name: `Total of ${periodText({ start: before.from, end: before.to })}`,
            look: "before",
            values: earlier.map(({ amount }) => amount),
            days: earlier.map(({ day }) => day),
          },
        ]
      : [];
  const description = {
    kind: addsUp(grouping) ? kind : ("lines" as const),
    unit: unitOf(question),
    days: days.map(({ day }) => day),
    changing: days.filter(({ state }) => state === "settling").map(({ day }) => day),
    series: [...layers.map(({ heading: _, ...one }) => one), ...line],
    marks: dayMarks(lacking),
  };
  const rows = days.map(({ day, state }, i) => [
    html`<time>${day}</time>${STATE_FLAGS[state]}`,
    ...layers.map(({ values }) => exactText(values[i] ?? "–")),
  ]);
  const caption = `${title.charAt(0).toLowerCase()}${title.slice(1)}`;
  const titles = [...columns("Day (UTC)"), ...numberColumns(...layers.map(({ heading }) => heading))];
  const exact = table(
    `Exact ${caption}${question.currency === null ? "" : `, in ${question.currency}`}`,
    titles,
    rows,
    { sortable: true },
  );
  return html`<figure id="${id}-chart" data-chart="${encodeDescription(description)}">
<figcaption><h3 id="${id}">${title}</h3></figcaption>
${folded(`Table: ${caption}`, html`${exact}${below}`)}</figure>
`;
}

const STATE_FLAGS = {
  final: undefined,
  settling: html` <small>may change</small>`,
  incomplete: html` <b class="flag">not complete</b>`,
  unread: html` <b class="flag">not read</b>`,
};

function dayMarks({ incompleteDays, unreadDays }: Answer["lacking"]): readonly DayMark[] {
  const marks: readonly DayMark[] = [
    { label: "not complete", days: incompleteDays, pattern: "hatched" },
    { label: "not read", days: unreadDays, pattern: "dotted" },
  ];
  return marks.filter(({ days }) => days.length > 0);
}

export function tooLowNote(days: readonly Day[]): Html | undefined {
  if (days.length === 0) return undefined;
  return html` <b class="flag">Too low on ${daysHtml(days)}</b> (hatched): not all of it could be read.`;
}

export function unreadNote(days: readonly Day[]): Html | undefined {
  if (days.length === 0) return undefined;
  return html` Some usage was not read (dotted) on ${daysHtml(days)}: the day is before a series began, or not due yet.`;
}

/** The width is an attribute, because the page's policy forbids `style` attributes. */
export function shareBar(share: number): Html {
  const percent = Number.isFinite(share) ? Math.max(0.5, share * 100).toFixed(1) : "0";
  return html`<svg class="share" aria-hidden="true"><rect width="${percent}%" height="100%"/></svg>`;
}

export function projectNames(names: readonly string[], count: number): Html {
  const more = count > names.length ? ` and ${counted(count - names.length, "more project")}` : undefined;
  return html`${names.map((name, i) => html`${i > 0 ? ", " : undefined}${nameHtml(name)}`)}${more}`;
}
