// What a chart of amounts over days, weeks or months shows. The server writes it on the page; the browser draws it. Pure.

export type ChartDescription = {
  /** Bars are stacked, the first series at the bottom; lines are not. */
  readonly kind: "bars" | "lines";
  /** Follows an amount: "hours", "requests". */
  readonly unit: string;
  /** Of a cost. */
  readonly currency: string | null;
  /** For the axis, one for each bar: "Nov 3". */
  readonly labels: readonly string[];
  /** What a bar is of, different for each: "2026-11-03". */
  readonly titles: readonly string[];
  /** The bars of which the amounts may still change, by their index: they are lighter. */
  readonly changing: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly marks: readonly BarMark[];
};

export type ChartSeries = {
  /** For people; may come from outside. */
  readonly name: string;
  /** What the name stands for, where that is longer: the identifier of a key. Shown when the name is pointed at. */
  readonly hint?: string | undefined;
  /** A number from 0 is a colour of the palette; "rest": the other groups added up; "before": the period compared with, as a dashed line. */
  readonly look: number | "rest" | "before";
  /** Exact decimal texts, one for each bar; null if nothing is known. */
  readonly values: readonly (string | null)[];
  /** What the values are of, if not of what the bars are. */
  readonly titles?: readonly string[] | undefined;
  /** A relative link to a page about this series only. */
  readonly href?: string | undefined;
};

/** A background behind some bars. */
export type BarMark = {
  readonly label: string;
  readonly at: readonly number[];
  readonly pattern: "hatched" | "dotted";
};

/** At most this many series have a colour of their own. */
const PALETTE_SIZE = 8;

/** As a property of CSS, so that a chart follows a change from light to dark. */
export function seriesColour({ look }: ChartSeries): string {
  if (look === "rest") return "var(--rest)";
  return look === "before" ? "var(--soft)" : `var(--series-${(look % PALETTE_SIZE) + 1})`;
}
