// A chart of amounts by day, week or month, which the browser draws, above the table of its exact numbers. Pure.

import { sumOf } from "../decimal.ts";
import type { Answer } from "../facts/answer.ts";
import { addDays, type Day, dayCount, startOfDay } from "../usage/days.ts";
import { addsUp } from "../usage/dimensions.ts";
import { METRIC_TABLE } from "../usage/metrics.ts";
import type { ChartDescription, ChartSeries } from "./chart-description.ts";
import { counted, dayLabel, exactText, metricName, periodText } from "./format.ts";
import { columns, folded, groupHtml, groupText, type Html, html, numberColumns, table, trustedHtml } from "./html.ts";

type Group = Pick<Answer["groups"][number], "group" | "label">;

const UNITS: ReadonlyMap<string, string> = new Map(METRIC_TABLE.map(({ name, unit }) => [name, unit]));

export function unitOf({ metric, currency }: Pick<Answer["question"], "metric" | "currency">): string {
  return currency ?? UNITS.get(metric) ?? "";
}

/** An API key by its comment and a project by its name, if no other of the groups has the same. */
export function nameOf(grouping: string, { group, label }: Group, among: readonly Group[]): string {
  if (label === null) return groupText(grouping, group);
  return among.some((one) => one.label === label && one.group !== group) ? `${label} (${group})` : label;
}

export function groupCell(grouping: string, one: Group, among: readonly Group[]): Html {
  if (one.label === null) return groupHtml(grouping, one.group);
  const name = nameOf(grouping, one, among);
  const short = shortName(name, among);
  return html`<bdi title="${short === name ? (one.group ?? "") : name}">${short}</bdi>`;
}

const COMMON_START_MIN = 20;

/** Where all names begin with the same words, a list that cuts them off would show no difference: "… (region 1)". */
function shortName(name: string, among: readonly Group[]): string {
  const names = among.map(({ label, group }) => label ?? group ?? "");
  const [first = ""] = names;
  let length = 0;
  while (length < first.length && names.every((one) => one[length] === first[length])) length++;
  const common = first.slice(0, length);
  const words = Math.max(common.lastIndexOf(" ("), common.includes(" (") ? -1 : common.lastIndexOf(" "));
  return names.length > 1 && words >= COMMON_START_MIN ? `…${name.slice(words)}` : name;
}

export const GRAINS = ["day", "week", "month"] as const;
/** What a bar of a chart is of. */
export type Grain = (typeof GRAINS)[number];

type ChartOptions = {
  readonly id: string;
  readonly title: string;
  readonly grain?: Grain;
  /** Leads to a group alone, and to more of the others. */
  readonly hrefOf?: (group: string | null) => string | undefined;
  readonly othersHref?: string | undefined;
  /** Stands below the table. */
  readonly below?: Html | undefined;
};

/** A group of the chart, or the others together. `heading` is its column in the table. */
type Layer = ChartSeries & { readonly heading: Html };

export function answerChart(
  answer: Answer,
  { id, title, grain = "day", hrefOf, othersHref, below }: ChartOptions,
): Html {
  const { question, days, groups, other, otherByDay, beforeByDay, compared } = answer;
  const { grouping, before, metric, currency } = question;
  const bars = barsOf(days, grain);
  const sums = (amounts: readonly (string | null)[]) => bars.map(({ at }) => sumAt(amounts, at));
  const drawn = groups.filter(({ byDay }) => byDay).sort((a, b) => a.rank - b.rank);
  const layers: Layer[] = drawn.map((group, i) => ({
    name: grouping === "none" ? metricName(metric) : shortName(nameOf(grouping, group, groups), groups),
    hint: group.label === null ? undefined : nameOf(grouping, group, groups),
    heading: grouping === "none" ? html`${metricName(metric)}` : groupCell(grouping, group, groups),
    look: i,
    values: sums(group.byDay ?? []),
    href: hrefOf?.(group.group),
  }));
  if (otherByDay) {
    const name = counted(groups.length - drawn.length + (other?.groups ?? 0), "other");
    layers.push({ name, heading: html`<i>${name}</i>`, look: "rest", values: sums(otherByDay), href: othersHref });
  }
  // A month may have fewer days than the one before.
  const earlier = beforeByDay?.slice(0, days.length);
  const line: ChartSeries[] =
    compared && before && earlier
      ? [
          {
            name: "Total before",
            hint: periodText({ start: before.from, end: before.to }),
            look: "before",
            values: sums(earlier.map(({ amount }) => amount)),
            titles: bars.map(({ at }) =>
              barTitle(
                at.flatMap((day) => earlier[day]?.day ?? []),
                "day",
              ),
            ),
          },
        ]
      : [];
  const description: ChartDescription = {
    kind: addsUp(grouping) ? "bars" : "lines",
    unit: unitOf(question),
    currency,
    labels: bars.map(({ days: [first = ""] }) => (grain === "month" ? first.slice(0, 7) : dayLabel(first))),
    titles: bars.map((bar) => bar.title),
    changing: indexesOf(bars, ({ states }) => states.has("settling")),
    series: [...layers.map(({ heading: _, ...one }) => one), ...line],
    marks: MARKS.map(({ isOf, ...mark }) => ({ ...mark, at: indexesOf(bars, isOf) })).filter(({ at }) => at.length > 0),
  };
  const rows = bars.map((bar, i) => [
    html`<time>${bar.title}</time>${MARKS.filter(({ isOf }) => isOf(bar)).map(({ label }) => html` <b class="flag">${label}</b>`)}${
      bar.states.has("settling") ? html` <small>may change</small>` : undefined
    }`,
    ...layers.map(({ values }) => exactText(values[i] ?? "–")),
  ]);
  const caption = `${title.charAt(0).toLowerCase()}${title.slice(1)}`;
  const titles = [
    ...columns(`${grain.charAt(0).toUpperCase()}${grain.slice(1)} (UTC)`),
    ...numberColumns(...layers.map(({ heading }) => heading)),
  ];
  const exact = table(`Exact ${caption}${currency === null ? "" : `, in ${currency}`}`, titles, rows);
  return html`<figure id="${id}-chart"><script type="application/json">${scriptJson(description)}</script>
<figcaption><h3 id="${id}">${title}</h3></figcaption>
${folded(`Table: ${caption}`, html`${exact}${below}`)}</figure>
`;
}

type Days = Answer["days"];
type Bar = {
  readonly title: string;
  readonly days: readonly Day[];
  /** The indexes of its days in the answer. */
  readonly at: readonly number[];
  readonly states: ReadonlySet<Days[number]["state"]>;
  /** A week or month of which the question leaves out days: lower than the others for that reason alone. */
  readonly isCut: boolean;
};

function barsOf(days: Days, grain: Grain): readonly Bar[] {
  const indexed = days.map(({ day, state }, i) => ({ day, state, i }));
  return [...Map.groupBy(indexed, ({ day }) => grainStart(day, grain))].map(([start, of]) => {
    const own = of.map(({ day }) => day);
    const next = grain === "month" ? grainStart(addDays(start, 31), grain) : addDays(start, grain === "week" ? 7 : 1);
    return {
      title: barTitle(own, grain),
      days: own,
      at: of.map(({ i }) => i),
      states: new Set(of.map(({ state }) => state)),
      isCut: own.length < dayCount({ start, end: next }) - 1,
    };
  });
}

/** Weeks begin on Monday. */
function grainStart(day: Day, grain: Grain): Day {
  if (grain === "day") return day;
  if (grain === "month") return `${day.slice(0, 7)}-01`;
  return addDays(day, -((startOfDay(day).getUTCDay() + 6) % 7));
}

function barTitle(days: readonly Day[], grain: Grain): string {
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return "";
  return grain === "day" && first === last ? first : periodText({ start: first, end: last });
}

function sumAt(amounts: readonly (string | null)[], at: readonly number[]): string | null {
  const known = at.flatMap((day) => amounts[day] ?? []);
  return known.length === 0 ? null : sumOf(...known);
}

function indexesOf(bars: readonly Bar[], isOf: (bar: Bar) => boolean): readonly number[] {
  return bars.flatMap((bar, i) => (isOf(bar) ? [i] : []));
}

const MARKS = [
  { label: "not complete", pattern: "hatched", isOf: ({ states }: Bar) => states.has("incomplete") },
  { label: "not read", pattern: "dotted", isOf: ({ states }: Bar) => states.has("unread") },
  { label: "not all days chosen", pattern: "dotted", isOf: ({ isCut }: Bar) => isCut },
] as const;

/** Nothing in it ends the element. */
function scriptJson(value: object): Html {
  return trustedHtml(JSON.stringify(value).replaceAll("<", "\\u003c"));
}

/** The width is an attribute, because the page's policy forbids `style` attributes. */
export function shareBar(share: number): Html {
  const percent = Number.isFinite(share) ? Math.max(0.5, share * 100).toFixed(1) : "0";
  return html`<svg class="share" aria-hidden="true"><rect width="${percent}%" height="100%"/></svg>`;
}
