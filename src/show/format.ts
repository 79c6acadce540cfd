// Formats amounts, days, metric names and budgets for people: always in English, whatever the machine's language. Pure.

import { present } from "../text.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import { addDays, type Day, dayCount, dayOf, startOfDay, type Window } from "../usage/days.ts";
import { METRIC_TABLE } from "../usage/metrics.ts";
import { type Html, html } from "./html.ts";

/** Rounds to whole units, and amounts below 100 to three significant digits. */
const ROUNDED = { maximumFractionDigits: 0, maximumSignificantDigits: 3, roundingPriority: "morePrecision" } as const;
const COMPACT: Intl.NumberFormatOptions = { notation: "compact", maximumFractionDigits: 1, useGrouping: true };
/** Rounds to whole percents, and below 10 % to two significant digits. */
const PERCENT = { ...ROUNDED, maximumSignificantDigits: 2, style: "percent", signDisplay: "exceptZero" } as const;

/** Makes each format at its first use: making one takes milliseconds, and most commands show no amounts. */
function madeOnce<Options, Format>(make: (options: Options) => Format): (options: Options) => Format {
  const made = new Map<string, Format>();
  return (options) => {
    const key = JSON.stringify(options);
    const format = made.get(key) ?? make(options);
    made.set(key, format);
    return format;
  };
}

const numberFormat = madeOnce((options: Intl.NumberFormatOptions) => new Intl.NumberFormat("en-US", options));
const dateFormat = madeOnce(
  (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat("en-US", { timeZone: "UTC", ...options }),
);

/** Intl formats a decimal text exactly, while a number would lose digits. */
function formatted(amount: string, options: Intl.NumberFormatOptions): string {
  return numberFormat(options).format(amount as `${number}`);
}

/** 1,621.74 hours are "1,622", 1.2345 are "1.23", 373381 requests are "373,381". */
export function roundedText(amount: string): string {
  return formatted(amount, ROUNDED);
}

/** What an amount measures: the metric and, for a cost, the currency. */
export type Measure = { readonly metric: string; readonly currency: string | null };

/** "$214,678"; with at most three digits before the point "$57.20"; below one cent "$0.00123". */
export function moneyText(amount: string, currency: string): string {
  const isTiny = /^-?0\.00\d*[1-9]/.test(amount);
  const digits = wholeDigits(amount) > 3 ? 0 : 2;
  const precision = isTiny
    ? { maximumSignificantDigits: 3 }
    : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return formatted(amount, { style: "currency", currency, ...precision });
}

/** Without the name of a metric: "$214,678", "3,116"; with more than five digits "373.4K", so that a headline stays narrow. */
export function shortText(amount: string, { currency }: Pick<Measure, "currency">): string {
  if (currency !== null) return moneyText(amount, currency);
  return formatted(amount, wholeDigits(amount) > 5 ? COMPACT : ROUNDED);
}

/** "$214,678", "3,116 hours", "1 hour", "1.2B tokens in". */
export function quantityText(amount: string, measure: Measure): string {
  const text = shortText(amount, measure);
  const unit = metricUnit(measure.metric);
  return measure.currency === null ? `${text} ${/^-?1$/.test(text) ? unit.replace(/s\b/, "") : unit}` : text;
}

/** "+$90", "-46 hours". */
export function signedText(amount: string, measure: Measure): string {
  return withSign(quantityText(amount, measure), amount);
}

/** The text of an amount, with a plus if the amount is above 0. */
export function withSign(text: string, amount: string): string {
  return amount.startsWith("-") || isZero(amount) ? text : `+${text}`;
}

/** Rounded to three significant digits: "$239,000", "3,120 hours"; in compact form with at most one digit after the point: "1.2M tokens in". */
export function estimateText(amount: string, { metric, currency }: Measure): string {
  const rounded = String(Number(Number(amount).toPrecision(3)));
  return currency === null
    ? quantityText(rounded, { metric, currency })
    : formatted(amount, { style: "currency", currency, maximumSignificantDigits: 3 });
}

/** Every digit, with separators. */
export function exactText(amount: string | number): string {
  const [whole = "", fraction] = String(amount).split(".");
  const separated = whole.replaceAll(/\B(?=(\d{3})+$)/g, ",");
  const digits = fraction?.replace(/0+$/, "") ?? "";
  return digits === "" ? separated : `${separated}.${digits}`;
}

/** Shows the amount as `textOf` writes it; the exact amount appears on hover. */
export function amountHtml(amount: string | null, measure: Measure, textOf: typeof shortText = shortText): Html {
  if (amount === null) return html`<span title="not known: not sent, or not read">–</span>`;
  const unit = measure.currency ?? metricUnit(measure.metric);
  return html`<data value="${amount}" title="${exactText(amount)} ${unit}">${textOf(amount, measure)}</data>`;
}

/** "1 day", "2,000 days" */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${exactText(count)} ${count === 1 ? one : many}`;
}

/** For an axis: "$20K", "1.2B". */
export function axisText(value: number, currency: string | null): string {
  const money = { style: "currency", notation: "compact", maximumSignificantDigits: 3 } as const;
  return numberFormat(currency === null ? COMPACT : { ...money, currency }).format(value);
}

export function isZero(amount: string): boolean {
  return /^-?[0.]+$/.test(amount);
}

/** The change in percent of the amount before, or in words if a percentage would mean nothing. */
export function changeText(amount: string, before: string | null): string {
  if (before === null) return "not known before";
  if (exactText(amount) === exactText(before)) return "unchanged";
  if (isZero(before)) return "new";
  const ratio = (Number(amount) - Number(before)) / Math.abs(Number(before));
  return Math.abs(ratio) < 0.0005 ? "about the same" : numberFormat(PERCENT).format(ratio);
}

function wholeDigits(amount: string): number {
  return amount.replace(/^-/, "").split(".")[0]?.length ?? 0;
}

/** "Nov 3", for an axis. */
export function dayLabel(day: Day): string {
  return dateFormat({ month: "short", day: "numeric" }).format(startOfDay(day));
}

export function monthName(day: Day): string {
  return dateFormat({ month: "long" }).format(startOfDay(day));
}

/** "Oct 26 – Nov 22, 2026". */
export function periodText({ start, end }: Window): string {
  // Around the dash, Intl puts thin spaces, which people and tests can't type.
  return dateFormat({ month: "short", day: "numeric", year: "numeric" })
    .formatRange(startOfDay(start), startOfDay(end))
    .replaceAll(/[\u2009\u202f]/g, " ");
}

/** "2026-11-20 02:15 UTC". */
export function instantText(instant: Date): string {
  return `${dayOf(instant)} ${instant.toISOString().slice(11, 16)} UTC`;
}

/** "under 1 s", "40 s", "12 min", "3 h 20 min" */
export function durationText(seconds: number): string {
  if (seconds < 1) return "under 1 s";
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Undefined while the run goes on. */
export function secondsTaken({ startedAt, finishedAt }: { startedAt?: Date; finishedAt?: Date | null }) {
  return startedAt && finishedAt ? Math.round((finishedAt.getTime() - startedAt.getTime()) / 1000) : undefined;
}

export function windowText({ start, end }: Window): string {
  return start === end ? start : `${start} to ${end}`;
}

const WINDOWS_SHOWN_MAX = 6;

/** "Nov 3 – 5, 2026; Nov 9, 2026 and 3 more days". */
export function daysText(days: readonly Day[]): string {
  const windows = windowsByKind([...new Set(days)].sort(), () => "listed");
  const rest = windows.slice(WINDOWS_SHOWN_MAX).reduce((sum, window) => sum + dayCount(window), 0);
  const shown = windows.slice(0, WINDOWS_SHOWN_MAX).map(periodText).join("; ");
  return `${shown}${rest > 0 ? ` and ${counted(rest, "more day")}` : ""}`;
}

/** Splits days, the earliest first, into windows of consecutive days of one kind. */
export function windowsByKind<Kind extends string>(days: readonly Day[], kindOf: (day: Day) => Kind) {
  const windows: (Window & { kind: Kind })[] = [];
  for (const day of days) {
    const kind = kindOf(day);
    const last = windows.at(-1);
    if (last?.kind === kind && addDays(last.end, 1) === day) windows[windows.length - 1] = { ...last, end: day };
    else windows.push({ start: day, end: day, kind });
  }
  return windows;
}

const NAMED_METRICS: readonly { readonly name: string; readonly label: string; readonly meaning: string }[] = [
  ...METRIC_TABLE,
  { name: "estimated_cost", label: "Estimated cost", meaning: "Usage at the configured prices" },
  { name: "billed_cost", label: "Billed cost", meaning: "What the service charges" },
  { name: "dollars", label: "Billed dollars", meaning: "What the service charges" },
];

/** A metric that is not known here keeps the name of its column. */
export function metricName(column: string): string {
  return NAMED_METRICS.find(({ name }) => name === column)?.label ?? column;
}

/** "hours including all processing" */
export function metricMeaning(column: string): string {
  return inSentence(NAMED_METRICS.find(({ name }) => name === column)?.meaning.split(",")[0] ?? "");
}

/** Behind an amount, or within a sentence: "tokens in", "TTS characters". */
export function metricUnit(column: string): string {
  return inSentence(metricName(column));
}

export function inSentence(text: string): string {
  return /^[A-Z]{2}/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);
}

export function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** "november (2026-11, billed)"; "calls (2026-11-20)" for a budget per day. */
export function budgetTitle({ name, costSource, ...use }: BudgetUse): string {
  return `${name} (${budgetPeriod(use)}${costSource === null ? "" : `, ${costSource}`})`;
}

export function budgetPeriod({ period, start }: Pick<BudgetUse, "period" | "start">): string {
  return period === "month" ? start.slice(0, 7) : start;
}

/** "$834.50 of $1,000 (83%), heading for $1,120 (112%); 2 days may still change" */
export function spentText(use: BudgetUse): string {
  const { daysMissing, daysNotFinal, hasUnpriced, isNeverSeen, scope, scopeValue } = use;
  return present([
    budgetShareText(use),
    isNeverSeen && `no usage of ${scope} ${JSON.stringify(scopeValue)} was ever read`,
    daysMissing > 0 && `${counted(daysMissing, "day")} not read and not counted`,
    daysNotFinal > 0 && `${counted(daysNotFinal, "day")} may still change`,
    hasUnpriced && "usage without a price, or charges without an amount, are not counted",
  ]).join("; ");
}

/** "$834.50 of $1,000 (83%), heading for $1,120 (112%)" */
export function budgetShareText(use: BudgetUse): string {
  const { amount, used, percent, forecast, forecastPercent } = use;
  const limit = quantityText(amount, use);
  if (used === null || percent === null) return `no day of it was read yet; the budget is ${limit}`;
  const share = `${shortText(used, use)} of ${limit} (${wholePercent(percent)})`;
  if (forecast === null || forecastPercent === null) return share;
  return `${share}, heading for ${estimateText(forecast, use)} (${wholePercent(forecastPercent)})`;
}

/** Rounds down, but shows 101% just above the limit, as "100%" means that the budget is used up exactly. */
export function wholePercent(percent: string): string {
  const share = Number(percent);
  return `${share > 100 ? Math.max(101, Math.floor(share)) : Math.floor(share)}%`;
}
