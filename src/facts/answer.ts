// The answer to a question: groups with their amounts by day, and what is lacking. Amounts are exact decimal texts. Pure.

import { z } from "zod";
import { difference, plainDecimal } from "../decimal.ts";
import type { Day, Window } from "../usage/days.ts";
import { addsUp } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { ASKED_METRICS, isCost, type Question, SORTS, SPLITS } from "./question.ts";
import type { Scope } from "./sql.ts";

/** How many groups have amounts by day: the largest, which the chart draws. */
export const DRAWN_MAX = 8;

const DAY_STATES = ["final", "settling", "incomplete", "unread"] as const;
type DayState = (typeof DAY_STATES)[number];

const aDay = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);
const anAmount = z
  .string()
  .regex(/^-?\d+(\.\d+)?$/)
  .nullable()
  .describe("An exact decimal as text, because a JSON number would lose digits; null if it is not known");
const byDay = z.array(anAmount).describe("One for each of days; null where the day was not read");
const amounts = {
  amount: anAmount.describe("Of the period"),
  before: anAmount.describe("Of the compared period"),
  change: anAmount.describe(
    "amount - before, where null counts as 0; null if a day of either period was not read: lacking names these days",
  ),
};
const aWindow = z.object({ from: aDay, to: aDay });
const aDayState = z
  .enum(DAY_STATES)
  .describe(
    "final: it changes no more; settling: it is still read again; incomplete: the amounts may be too low, as a reading is missing, failed or in doubt, or came before the day was over, or a charge has no amount; unread: not every series was to be read, as the day is before a series began or not due yet",
  );

export const Answer = z.object({
  question: z
    .object({
      ...aWindow.shape,
      before: aWindow.nullable().describe("The compared period"),
      project: z.string().nullable().describe("The identifier of the project; null for all"),
      metric: z.enum(ASKED_METRICS),
      currency: z.string().nullable().describe("Of a cost; null for usage, and if no price is configured"),
      grouping: z.enum(SPLITS),
      filter: z.string().nullable(),
      group: z.object({ value: z.string().nullable() }).nullable(),
      limit: z.int(),
      sort: z.enum(SORTS),
    })
    .describe("The question as it was understood"),
  complete: z.boolean().describe("Whether nothing that belongs to the amounts of the period is lacking"),
  compared: z.boolean().describe("Whether there are changes: every day of both periods was read"),
  lacking: z.object({
    incompleteDays: z.array(aDay).describe("Days of the period with the state incomplete"),
    unreadDays: z.array(aDay).describe("Days of the period with the state unread"),
    incompleteDaysBefore: z.array(aDay).describe("The same of the compared period"),
    unreadDaysBefore: z.array(aDay),
    projectsLeftOut: z
      .array(z.string())
      .describe("Projects exported otherwise than by this grouping and filter; at most 20"),
    projectsLeftOutCount: z.int(),
    projectsEnded: z
      .array(z.string())
      .describe("Projects whose export by this grouping and filter has ended, so that days are lacking; at most 20"),
    projectsEndedCount: z.int(),
    unpricedModels: z.int().describe("How many models have usage without a price, which an estimated cost lacks"),
    unpricedMetrics: z.array(z.enum(METRICS)).describe("The metrics of usage that have no price"),
    otherCurrencies: z.array(z.string()).describe("Currencies of other prices; each has to be asked for by itself"),
  }),
  projects: z.array(z.string()).describe("The projects in the amounts; at most 20"),
  projectCount: z.int(),
  available: z
    .object({ groupings: z.array(z.enum(SPLITS)), filters: z.array(z.string()), currencies: z.array(z.string()) })
    .describe(
      "What can be asked: groupings under this filter, filters with conditions by this grouping, currencies of an estimated cost",
    ),
  days: z.array(z.object({ day: aDay, state: aDayState })).describe("The days of the period"),
  groups: z
    .array(
      z.object({
        rank: z.int().describe("1 for the largest"),
        group: z.string().nullable().describe("The value of the dimension; null for no value"),
        label: z.string().nullable().describe("The comment of an API key, or the name of a project or line item"),
        projectInLabel: z
          .string()
          .optional()
          .describe(
            "The name of the project, with which the label ends; only of an API key if keys of several projects have its comment",
          ),
        ...amounts,
        byDay: byDay.optional().describe(`Only of the ${DRAWN_MAX} largest`),
      }),
    )
    .describe("Groups whose amounts are 0 are left out"),
  other: z
    .object({ groups: z.int().describe("How many groups are not listed"), ...amounts })
    .nullable()
    .describe(
      "The other groups together; null if all are listed. Without amounts for tags and feature_set, which overlap",
    ),
  otherByDay: byDay
    .nullable()
    .describe("All groups without byDay together; null if there are none, and for tags and feature_set"),
  total: z.object(amounts).nullable().describe("Null for tags and feature_set"),
  beforeByDay: z
    .array(z.object({ day: aDay, state: aDayState, amount: anAmount }))
    .nullable()
    .describe("The days of the compared period; null if there is none, and for tags and feature_set"),
  sql: z.string().describe("A statement that gives the amounts of every group by day, to be run as usage_reader"),
});
export type Answer = z.output<typeof Answer>;

export function askedPeriods({ question: { from, to, before } }: Pick<Answer, "question">) {
  return { period: { start: from, end: to }, before: before ? { start: before.from, end: before.to } : undefined };
}

/** The period that the amounts are compared with; undefined if they are not. */
export function comparedWindow(answer: Answer): Window | undefined {
  return answer.compared ? askedPeriods(answer).before : undefined;
}

/**
 * A row of usageSql: the sums of a group, of a group on a day, of a day, or of all. Without a rank the sums are those of all other groups. A
 * group whose amounts are all 0 or not known is only in those of days.
 */
export type UsageRow = {
  readonly part: "group" | "group of day" | "day" | "total";
  readonly rank: string | null;
  readonly group: string | null;
  readonly usage_date: Day | null;
  readonly amount: string | null;
  readonly amount_before: string | null;
  /** How many groups there are; null if there is none. */
  readonly groups: string | null;
};

type Lacking = Answer["lacking"];
export type Unpriced = Pick<Lacking, "unpricedModels" | "unpricedMetrics">;

export type DayWithState = Answer["days"][number];

export type Label = { readonly label: string; readonly projectInLabel?: string };

/** What is known of the series of a question before their amounts are read. It is the same for every metric of usage. */
export type Basis = {
  readonly scope: Scope & Pick<Answer, "projects" | "projectCount" | "available">;
  /** The days of the period. */
  readonly days: DayWithState[];
  /** The days of the compared period; undefined if there is none. */
  readonly daysBefore: DayWithState[] | undefined;
  readonly lacking: Omit<Lacking, keyof Unpriced | "otherCurrencies">;
  /** Whether every day of both periods was read, so that the difference between them is a change. */
  readonly isCompared: boolean;
};

export function lackingDays(days: readonly DayWithState[], daysBefore: readonly DayWithState[] = []) {
  const daysWith = (state: DayState, all: readonly DayWithState[]) =>
    all.flatMap((one) => (one.state === state ? one.day : []));
  return {
    incompleteDays: daysWith("incomplete", days),
    unreadDays: daysWith("unread", days),
    incompleteDaysBefore: daysWith("incomplete", daysBefore),
    unreadDaysBefore: daysWith("unread", daysBefore),
  };
}

/** Whether every day of the period was read of every project. */
export function isWhole({ lacking }: Pick<Basis, "lacking">): boolean {
  const { incompleteDays, unreadDays, projectsLeftOutCount, projectsEndedCount } = lacking;
  return incompleteDays.length + unreadDays.length + projectsLeftOutCount + projectsEndedCount === 0;
}

type Known = Basis & {
  readonly question: Question;
  readonly rows: readonly UsageRow[];
  /** By the identifiers of API keys, projects or line items. */
  readonly labels: ReadonlyMap<string | null, Label>;
  readonly unpriced: Unpriced;
  readonly sql: string;
};

export function answerOf(known: Known): Answer {
  const { question, scope, days, daysBefore, lacking, rows, labels, unpriced, isCompared, sql } = known;
  const sumsUp = addsUp(question.grouping);
  const rowsOf = (part: UsageRow["part"]) => rows.filter((row) => row.part === part);
  const groups = rowsOf("group").filter(({ rank }) => Number(rank) > 0);
  const other = rowsOf("group").find(({ rank }) => rank === null);
  const drawn = Map.groupBy(rowsOf("group of day"), ({ rank }) => rank);
  const [total] = rowsOf("total");
  const sums = sumsUp && total ? [total] : groups;
  const isRead = (...daysNotRead: readonly Day[][]) => lacking.projectsEndedCount + daysNotRead.flat().length === 0;
  // An absent amount is 0 if all days were read and the service sent the metric at all.
  const isAbsentZero = isRead(lacking.incompleteDays, lacking.unreadDays) && sums.some((row) => row.amount !== null);
  const wasAbsentZero =
    isRead(lacking.incompleteDaysBefore, lacking.unreadDaysBefore) && sums.some((row) => row.amount_before !== null);
  const amountsOf = ({ amount, amount_before }: UsageRow) => ({
    amount: withoutZeros(amount) ?? (isAbsentZero ? "0" : null),
    before: withoutZeros(amount_before) ?? (wasAbsentZero ? "0" : null),
    change: isCompared ? difference(amount ?? "0", amount_before ?? "0") : null,
  });
  const otherCurrencies = scope.available.currencies.filter((one) => one !== scope.currency);
  const isUnpriced = isCost(question.metric) && scope.currency === undefined;
  return {
    question: understood(question, scope),
    complete: isWhole(known) && unpriced.unpricedModels === 0 && !isUnpriced,
    compared: isCompared,
    lacking: { ...lacking, ...unpriced, otherCurrencies },
    projects: scope.projects,
    projectCount: scope.projectCount,
    available: scope.available,
    days,
    groups: groups.map((row) => {
      const named = { rank: Number(row.rank), group: row.group, label: null, ...labels.get(row.group) };
      const drawnDays = named.rank <= DRAWN_MAX && { byDay: amountsByDay(drawn.get(row.rank), days) };
      return { ...named, ...amountsOf(row), ...drawnDays };
    }),
    other: other
      ? {
          groups: Number(other.groups) - groups.length,
          ...(sumsUp ? amountsOf(other) : { amount: null, before: null, change: null }),
        }
      : null,
    otherByDay: sumsUp && (other || groups.length > DRAWN_MAX) ? amountsByDay(drawn.get(null), days) : null,
    total: sumsUp && total ? amountsOf(total) : null,
    beforeByDay: daysBefore && sumsUp ? beforeByDay(rowsOf("day"), daysBefore) : null,
    sql,
  };
}

function understood({ period, before, group, projects: _, ...question }: Question, { projectIds, currency }: Scope) {
  return {
    ...question,
    from: period.start,
    to: period.end,
    before: before ? { from: before.start, to: before.end } : null,
    // A page and the read API ask for one project at most; costChanges asks for several.
    project: projectIds?.join(" ") ?? null,
    filter: question.filter ?? null,
    currency: currency ?? null,
    group: group ?? null,
  };
}

function amountsByDay(rows: readonly UsageRow[] = [], days: readonly DayWithState[]): (string | null)[] {
  const amounts = new Map(rows.map(({ usage_date, amount }) => [usage_date, amount]));
  return days.map((day) => amountOn(day, amounts.get(day.day)));
}

function beforeByDay(rows: readonly UsageRow[], days: readonly DayWithState[]): Answer["beforeByDay"] {
  const amounts = new Map(rows.map(({ usage_date, amount_before }) => [usage_date, amount_before]));
  return days.map((day) => ({ ...day, amount: amountOn(day, amounts.get(day.day)) }));
}

/** A day without an amount is 0 only if it was read. */
function amountOn({ state }: DayWithState, amount: string | null = null): string | null {
  return withoutZeros(amount) ?? (state === "final" || state === "settling" ? "0" : null);
}

function withoutZeros(amount: string | null): string | null {
  return amount === null ? null : plainDecimal(amount);
}
