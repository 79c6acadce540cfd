// The answer to a question: groups with their amounts by day, and what is lacking. Amounts are exact decimal texts. Pure.

import { z } from "zod";
import { difference, plainDecimal } from "../decimal.ts";
import type { Day, Window } from "../usage/days.ts";
import { addsUp } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { ASKED_METRICS, isCost, type Question, type Scope, SORTS, SPLITS } from "./question.ts";

/** How many groups have amounts by day: the first by rank, which the chart draws. */
export const DRAWN_MAX = 8;

const aDay = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);
const anAmount = z
  .string()
  .regex(/^-?\d+(\.\d+)?$/)
  .nullable()
  .describe("An exact decimal as text, because a JSON number would lose digits; null if it is not known");
const byDay = z.array(anAmount).describe("One for each entry of days; null: unread, or incomplete without an amount");
const amounts = {
  amount: anAmount.describe("Of the period"),
  before: anAmount.describe("Of the compared period"),
  change: anAmount.describe("amount - before, with null as 0; null if compared is false"),
};
const aWindow = z.object({ from: aDay, to: aDay });
const aDayState = z
  .enum(["final", "settling", "incomplete", "unread"])
  .describe(
    "final: it changes no more; settling: it is still read again; incomplete: the amounts may be too low, as a reading is missing, failed or in doubt, or came before the day was over, or a charge has no amount; unread: the day is before a series began, or not due yet",
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
  complete: z.boolean().describe("True if no part of the amounts of the period is lacking"),
  compared: z.boolean().describe("False if there is no compared period, or lacking has days or projectsEnded"),
  lacking: z.object({
    incompleteDays: z.array(aDay).describe("Days of the period with the state incomplete"),
    unreadDays: z.array(aDay).describe("Days of the period with the state unread"),
    incompleteDaysBefore: z.array(aDay).describe("The same of the compared period"),
    unreadDaysBefore: z.array(aDay),
    projectsLeftOut: z.array(z.string()).describe("Exported projects without this grouping and filter; at most 20"),
    projectsLeftOutCount: z.int(),
    projectsEnded: z.array(z.string()).describe("Projects no longer exported by this grouping and filter; at most 20"),
    projectsEndedCount: z.int(),
    unpricedModels: z.int().describe("How many models have usage without a price: the estimated cost lacks this usage"),
    unpricedMetrics: z.array(z.enum(METRICS)).describe("The metrics of usage that have no price"),
    otherCurrencies: z.array(z.string()).describe("Other currencies of prices; each needs a question of its own"),
  }),
  projects: z.array(z.string()).describe("The projects in the amounts; at most 20"),
  projectCount: z.int(),
  available: z
    .object({ groupings: z.array(z.enum(SPLITS)), filters: z.array(z.string()), currencies: z.array(z.string()) })
    .describe("Groupings exported with this filter, filters with this grouping, currencies of estimated costs"),
  days: z.array(z.object({ day: aDay, state: aDayState })).describe("The days of the period"),
  groups: z
    .array(
      z.object({
        rank: z.int().describe("1 for the first by sort, or by amount if compared is false"),
        group: z.string().nullable().describe("The value of the dimension; null for no value"),
        label: z.string().nullable().describe("The comment of an API key, or the name of a project or line item"),
        ...amounts,
        byDay: byDay.optional().describe(`Only of the first ${DRAWN_MAX}`),
      }),
    )
    .describe("Groups whose amounts are 0 are left out"),
  other: z
    .object({ groups: z.int().describe("How many groups are not listed"), ...amounts })
    .nullable()
    .describe("The other groups together; null if all are listed. No amounts for tags and feature_set: they overlap"),
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
export type Amounts = NonNullable<Answer["total"]>;

export function askedPeriods({ question: { from, to, before } }: Pick<Answer, "question">) {
  return { period: { start: from, end: to }, before: before ? { start: before.from, end: before.to } : undefined };
}

/** The period that the amounts are compared with; undefined if they are not. */
export function comparedWindow(answer: Answer): Window | undefined {
  return answer.compared ? askedPeriods(answer).before : undefined;
}

/** A row of usageSql. Without a rank, the part "group" adds up the groups that are not listed, "group of day" those that are not drawn. */
export type UsageRow = {
  readonly part: "group" | "group of day" | "day" | "total";
  readonly rank: string | null;
  readonly group: string | null;
  readonly usage_date: Day | null;
  readonly amount: string | null;
  readonly amount_before: string | null;
  /** How many groups there are, listed or not. */
  readonly groups: string | null;
};

type Lacking = Answer["lacking"];
export type Unpriced = Pick<Lacking, "unpricedModels" | "unpricedMetrics">;
export type DayWithState = Answer["days"][number];

/** What is known about the series of a question before amounts are read. It is the same for every metric of usage. */
export type Basis = {
  readonly scope: Scope & Pick<Answer, "projects" | "projectCount" | "available">;
  readonly days: DayWithState[];
  /** The days of the compared period; undefined if there is none. */
  readonly daysBefore: DayWithState[] | undefined;
  readonly lacking: Omit<Lacking, keyof Unpriced | "otherCurrencies">;
  /** Whether the difference between the periods is a change: both are complete, and no project has ended. False without `daysBefore`. */
  readonly isCompared: boolean;
};

export function lackingDays(days: readonly DayWithState[], daysBefore: readonly DayWithState[] = []) {
  const daysWith = (state: DayWithState["state"], all: readonly DayWithState[]) =>
    all.flatMap((one) => (one.state === state ? one.day : []));
  return {
    incompleteDays: daysWith("incomplete", days),
    unreadDays: daysWith("unread", days),
    incompleteDaysBefore: daysWith("incomplete", daysBefore),
    unreadDaysBefore: daysWith("unread", daysBefore),
  };
}

/** Whether every day of the period is complete, and no project is left out or has ended. Unlike `complete`, ignores prices. */
export function isWhole({ lacking }: Pick<Basis, "lacking">): boolean {
  const { incompleteDays, unreadDays, projectsLeftOutCount, projectsEndedCount } = lacking;
  return incompleteDays.length + unreadDays.length + projectsLeftOutCount + projectsEndedCount === 0;
}

type AmountColumn = "amount" | "amount_before";

type AnswerParts = Basis & {
  readonly question: Question;
  readonly rows: readonly UsageRow[];
  /** By the identifiers of API keys, projects or line items. */
  readonly labels: ReadonlyMap<string | null, string>;
  readonly unpriced: Unpriced;
  readonly sql: string;
};

const UNKNOWN = { amount: null, before: null, change: null };

export function answerOf(parts: AnswerParts): Answer {
  const { question, scope, days, daysBefore, lacking, rows, labels, unpriced, isCompared, sql } = parts;
  const sumsUp = addsUp(question.grouping);
  const rowsOf = (part: UsageRow["part"]) => rows.filter((row) => row.part === part);
  const groups = rowsOf("group").filter(({ rank }) => rank !== null);
  const other = rowsOf("group").find(({ rank }) => rank === null);
  const dayRowsByRank = Map.groupBy(rowsOf("group of day"), ({ rank }) => rank);
  const byDayOf = (rank: string | null) => withAmounts(days, dayRowsByRank.get(rank)).map(({ amount }) => amount);
  const total = sumsUp ? rowsOf("total")[0] : undefined;
  const sums = total ? [total] : groups;
  // An absent amount means 0 if no day is incomplete or unread, no project has ended, and any group has an amount.
  const absentAmount = (column: AmountColumn, ...lacked: readonly Day[][]) =>
    lacking.projectsEndedCount + lacked.flat().length === 0 && sums.some((row) => row[column] !== null) ? "0" : null;
  const absent = absentAmount("amount", lacking.incompleteDays, lacking.unreadDays);
  const absentBefore = absentAmount("amount_before", lacking.incompleteDaysBefore, lacking.unreadDaysBefore);
  const amountsOf = ({ amount, amount_before }: UsageRow) => ({
    amount: plainAmount(amount) ?? absent,
    before: plainAmount(amount_before) ?? absentBefore,
    change: isCompared ? difference(amount ?? "0", amount_before ?? "0") : null,
  });
  const otherCurrencies = scope.available.currencies.filter((one) => one !== scope.currency);
  const isUnpriced = isCost(question.metric) && scope.currency === undefined;
  return {
    question: askedQuestion(question, scope),
    complete: isWhole(parts) && unpriced.unpricedModels === 0 && !isUnpriced,
    compared: isCompared,
    lacking: { ...lacking, ...unpriced, otherCurrencies },
    projects: scope.projects,
    projectCount: scope.projectCount,
    available: scope.available,
    days,
    groups: groups.map((row) => {
      const named = { rank: Number(row.rank), group: row.group, label: labels.get(row.group) ?? null };
      return { ...named, ...amountsOf(row), ...(named.rank <= DRAWN_MAX && { byDay: byDayOf(row.rank) }) };
    }),
    other: other ? { groups: Number(other.groups) - groups.length, ...(sumsUp ? amountsOf(other) : UNKNOWN) } : null,
    otherByDay: sumsUp && (other || groups.length > DRAWN_MAX) ? byDayOf(null) : null,
    total: total ? amountsOf(total) : null,
    beforeByDay: daysBefore && sumsUp ? withAmounts(daysBefore, rowsOf("day"), "amount_before") : null,
    sql,
  };
}

function askedQuestion({ period, before, group, projects: _, ...question }: Question, { projectIds, currency }: Scope) {
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

/** Without an amount, a final or settling day had no usage, and any other day is unknown. */
function withAmounts(days: readonly DayWithState[], rows: readonly UsageRow[] = [], column: AmountColumn = "amount") {
  const amounts = new Map(rows.map((row) => [row.usage_date, row[column]]));
  return days.map(({ day, state }) => {
    const absent = state === "final" || state === "settling" ? "0" : null;
    return { day, state, amount: plainAmount(amounts.get(day)) ?? absent };
  });
}

function plainAmount(amount: string | null | undefined): string | undefined {
  return amount ? plainDecimal(amount) : undefined;
}
