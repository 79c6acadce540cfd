// Why usage changed from one period to another: the data, and what they say in plain words. Amounts are exact decimal texts. Pure.

import { type Day, dayCount, daysOf, type Window } from "../usage/days.ts";
import type { UsageGrouping } from "../usage/series.ts";
import { changeText, counted, daysText, isZero, metricName, roundedText, windowText } from "./format.ts";

export type UsageChange = {
  readonly period: Window;
  readonly before: Window;
  /** The projects whose usage is added up; those without any usage in the two periods are not among them. */
  readonly projects: readonly string[];
  readonly metrics: readonly MetricChange[];
  /** Days of the two periods whose total may still change. */
  readonly notFinalDays: readonly Day[];
  /** Days of the two periods on which the total of some project was not read. */
  readonly lackingDays: readonly Day[];
};

export type MetricChange = Amounts & {
  /** The name of its column in bi.usage_total, or "cost" for what the service charges. */
  readonly metric: string;
  /** Without the days that are not compared. */
  readonly compared: Amounts;
  /** What the total has on the days that are not compared; null if it has nothing there. */
  readonly notCompared: Amounts | null;
  /** How many days are compared, of all days of the longer period; counted for each project. */
  readonly daysCompared: number;
  readonly daysInAll: number;
  /** "project" if there are several, and each grouping that was read. */
  readonly breakdowns: readonly ChangeBreakdown[];
};

export type Amounts = { readonly before: string; readonly after: string; readonly change: string };

/** The parts add up to the metric's change. */
export type ChangeBreakdown = {
  readonly grouping: Exclude<UsageGrouping, "none"> | "line_item" | "project";
  readonly daysCompared: number;
  readonly daysInAll: number;
  readonly newGroups: number;
  readonly vanishedGroups: number;
  /** The groups, those with the largest change first; then the other parts. */
  readonly parts: readonly ChangePart[];
};

export type ChangePart = Amounts & {
  /**
   * - "others": the groups that are not shown, added up
   * - "not attributed": what the total has and no group accounts for; negative if groups overlap
   * - "days not compared": the total of the days that only one of the two periods has
   */
  readonly part: "group" | "others" | "not attributed" | "days not compared";
  /** Null for no value, and if it is no group. */
  readonly group: string | null;
  /** Of an API key only: two projects may have keys with the same name. */
  readonly project: string | null;
  /** The API key's comment, if it is known. */
  readonly comment?: string | null | undefined;
  /** Null if it is no group. */
  readonly status: "new" | "vanished" | "changed" | "same" | null;
  /** How many groups the part has. */
  readonly groups: number;
  /** The first and the last compared day on which the group has some of the metric. */
  readonly firstDay: Day | null;
  readonly lastDay: Day | null;
};

/** A sentence in pieces, so that a page can set names apart from the text around them. */
export type Sentence = readonly (string | NamedGroup)[];
type NamedGroup = Pick<ChangePart, "group" | "comment"> & { readonly grouping: string };

const GROUPING_WORDS: Readonly<Record<ChangeBreakdown["grouping"], string>> = {
  project: "project",
  model: "model",
  accessor: "key",
  tags: "tags",
  endpoint: "endpoint",
  method: "method",
  deployment: "deployment",
  feature_set: "feature set",
  line_item: "line item",
};

export function groupingWord(grouping: ChangeBreakdown["grouping"]): string {
  return GROUPING_WORDS[grouping];
}

/** A key's comment, with its id if another of the parts has the same comment. Null if the part has none. */
export function keyLabel({ group, comment }: Pick<ChangePart, "group" | "comment">, parts: readonly ChangePart[]) {
  if (!comment) return null;
  return parts.some((one) => one.comment === comment && one.group !== group) ? `${comment} (${group})` : comment;
}

/** Everything worth knowing of one metric, the most important first. */
export function changeSentences(change: UsageChange, metric: MetricChange): readonly Sentence[] {
  return [
    headline(change, metric),
    ...(metric.daysCompared < metric.daysInAll
      ? leftOutSentences(change, metric.notCompared, change.lackingDays.length > 0)
      : []),
    ...metric.breakdowns.flatMap((breakdown) => contributors(metric, breakdown)),
    ...appeared(metric, "new"),
    ...appeared(metric, "vanished"),
    ...daySentences(change, metric),
  ];
}

function headline({ period, before, projects }: UsageChange, metric: MetricChange): Sentence {
  const name = metricName(metric.metric);
  const { compared, daysCompared, daysInAll } = metric;
  if (daysCompared === 0)
    return [`${name} can't be compared: no day was read both in ${windowText(period)} and in ${windowText(before)}.`];
  const ofAll = projects.length > 1 ? ` (of ${projects.length} projects together)` : "";
  const onDays =
    daysCompared < daysInAll ? ` on the ${counted(daysCompared, "day")} of ${daysInAll}${ofAll} that both have` : "";
  const amounts = `from ${roundedText(compared.before)} (${windowText(before)}) to ${roundedText(compared.after)} (${windowText(period)})${onDays && `,${onDays}`}`;
  if (isZero(compared.change))
    return [
      `${name} did not change${onDays}: ${roundedText(compared.after)} in ${windowText(period)} as in ${windowText(before)}.`,
    ];
  const verb = compared.change.startsWith("-") ? "fell" : "rose";
  const percent = changeText(compared.after, compared.before);
  const by = /%$/.test(percent) ? ` by ${percent.replace(/^[+-]/, "")}` : "";
  return [`${name} ${verb}${by}, ${amounts}.`];
}

/**
 * `amounts` are of the days that are not compared. Days are compared in pairs, so the last days of the longer period have no partner;
 * `isLacking`: other days are not compared either, because they were not read.
 */
export function leftOutSentences(
  { period, before }: Pick<UsageChange, "period" | "before">,
  amounts: Amounts | null | undefined,
  isLacking: boolean,
): readonly Sentence[] {
  if (!amounts) return [];
  const had = `${roundedText(amounts.before)} before, ${roundedText(amounts.after)} after`;
  const [shorter, longer] = dayCount(before) < dayCount(period) ? [before, period] : [period, before];
  const unpaired = daysOf(longer).slice(dayCount(shorter));
  if (unpaired.length === 0) return [[`Left out are days that only one of the two has: ${had}.`]];
  const days = daysText(unpaired);
  if (isLacking) return [[`Left out are days that only one of the two has, among them ${days}: ${had}.`]];
  const [is, has] = unpaired.length === 1 ? ["is", "has"] : ["are", "have"];
  return [[`Left out ${is} ${days}, which ${has} no day in the other period to be compared with: ${had}.`]];
}

const CONTRIBUTORS_MAX = 3;

/** The parts with the largest changes, each with its share of the whole change. */
function contributors(metric: MetricChange, { grouping, parts }: ChangeBreakdown): readonly Sentence[] {
  const largest = parts.filter(({ part, change }) => part === "group" && !isZero(change)).slice(0, CONTRIBUTORS_MAX);
  if (largest.length === 0) return [];
  const all = signedText(metric.compared.change);
  const named = largest.map((part, i): Sentence => {
    const { group, change } = part;
    const amount = signedText(change);
    return [
      i > 0 ? ", " : "",
      { grouping, group, comment: keyLabel(part, parts) },
      i === 0 && !isZero(metric.compared.change) ? ` accounts for ${amount} of ${all}` : ` ${amount}`,
    ];
  });
  return [[`By ${groupingWord(grouping)}, `, ...named.flat(), "."]];
}

/** "+90", "-46". */
export function signedText(amount: string): string {
  return amount.startsWith("-") || isZero(amount) ? roundedText(amount) : `+${roundedText(amount)}`;
}

const NAMED_MAX = 3;

/** Names the new or the vanished groups of every grouping. */
function appeared({ breakdowns }: MetricChange, status: "new" | "vanished"): readonly Sentence[] {
  const title = status === "new" ? "New" : "Vanished";
  return breakdowns.flatMap(({ grouping, parts, newGroups, vanishedGroups }): Sentence[] => {
    const count = status === "new" ? newGroups : vanishedGroups;
    if (count === 0) return [];
    const named = parts.filter((part) => part.status === status).slice(0, NAMED_MAX);
    const more = count - named.length;
    const rest = more > 0 ? [named.length > 0 ? ` and ${more} more` : `${more} of the others`] : [];
    const names = named.flatMap(
      (part, i): Sentence => [
        i > 0 ? ", " : "",
        { grouping, group: part.group, comment: keyLabel(part, parts) },
        ` ${sinceText(part)}(${signedText(part.change)})`,
      ],
    );
    return [[`${title} by ${groupingWord(grouping)}: `, ...names, ...rest, "."]];
  });
}

function sinceText({ status, firstDay, lastDay }: ChangePart): string {
  if (status === "new" && firstDay !== null) return `since ${firstDay} `;
  return status === "vanished" && lastDay !== null ? `last seen on ${lastDay} ` : "";
}

function daySentences(
  { lackingDays, notFinalDays }: UsageChange,
  { daysCompared, daysInAll, breakdowns }: MetricChange,
): readonly Sentence[] {
  // Compared with the days that the total lacks: a grouping that only some projects are read by has fewer days in all.
  const partly = breakdowns.filter(
    (one) => one.daysInAll - one.daysCompared > daysInAll - daysCompared && one.grouping !== "project",
  );
  return [
    ...(lackingDays.length > 0
      ? [[`${counted(lackingDays.length, "day was", "days were")} not read: ${daysText(lackingDays)}.`]]
      : []),
    ...partly.map((one) => [
      `By ${groupingWord(one.grouping)} only ${one.daysCompared} of ${one.daysInAll} days can be compared, as it was not read on the others.`,
    ]),
    ...(notFinalDays.length > 0
      ? [
          [
            `${counted(notFinalDays.length, "day is", "days are")} not final yet and may still change: ${daysText(notFinalDays)}.`,
          ],
        ]
      : []),
  ];
}
