// What a chart over days shows. The server draws it as SVG, and writes it on the page; the browser reads it there and draws it again, to be
// pointed at. Pure.

import type { Day } from "../usage/days.ts";

export type ChartDescription = {
  /** Bars are stacked, the first series at the bottom; lines are not. */
  readonly kind: "bars" | "lines";
  /** Follows an amount: "hours", "requests", "EUR". */
  readonly unit: string;
  readonly days: readonly Day[];
  /** Days of which the amounts may still change: their bars are lighter. */
  readonly changing?: readonly Day[];
  readonly series: readonly ChartSeries[];
  readonly marks: readonly DayMark[];
};

export type ChartSeries = {
  /** For people; may come from outside. */
  readonly name: string;
  /** What the name stands for, where that is longer: the identifier of a key. Shown when the name is pointed at. */
  readonly hint?: string | undefined;
  /** A number from 0 is a colour of the palette; "rest": the other groups added up; "before": the period compared with, as a dashed line. */
  readonly look: number | "rest" | "before";
  /** Exact decimal texts, one for each day of the chart; null if nothing is known. */
  readonly values: readonly (string | null)[];
  /** The days of the values, if they are not those of the chart. */
  readonly days?: readonly Day[] | undefined;
  /** A relative link to a page about this series only. */
  readonly href?: string | undefined;
};

/** A background behind some days. */
export type DayMark = {
  readonly label: string;
  readonly days: readonly Day[];
  readonly pattern: "hatched" | "dotted";
};

/** At most this many series have a colour of their own. */
const PALETTE_SIZE = 8;

/** As a property of CSS, so that a chart follows a change from light to dark. */
export function seriesColour({ look }: ChartSeries): string {
  if (look === "rest") return "var(--rest)";
  return look === "before" ? "var(--soft)" : `var(--series-${(look % PALETTE_SIZE) + 1})`;
}

/** JSON for an attribute, in which a quotation mark takes six characters: values are therefore joined. */
export function encodeDescription({ series, ...rest }: ChartDescription): string {
  return JSON.stringify({
    ...rest,
    days: rest.days.join(" "),
    series: series.map(({ values, days, ...one }) => ({
      ...one,
      values: values.map((value) => value ?? "-").join(" "),
      days: days?.join(" "),
    })),
  });
}

/** Only for what encodeDescription made. */
export function decodeDescription(text: string): ChartDescription {
  const { days, series, ...rest } = JSON.parse(text);
  return {
    ...rest,
    days: words(days),
    series: series.map(({ values, days, ...one }: Record<string, string>) => ({
      ...one,
      values: words(values).map((value) => (value === "-" ? null : value)),
      ...(days === undefined ? {} : { days: words(days) }),
    })),
  };
}

function words(text = ""): string[] {
  return text === "" ? [] : text.split(" ");
}
