// What the overview and the report file show: what usage costs, how much was used, of what and by whom, and a forecast of the current month.
// question.ts chooses the view that an amount is read from, amounts.ts reads it, scope.ts says which days lack data, and answer.ts combines
// both. web/dashboard/overview-sections.ts and show/sentences.ts show the answer.

import type { Database } from "../db/connection/database.ts";
import { queryAtOneMoment, type ReadOptions, readAtOneMoment, USAGE_SECONDS } from "../db/connection/transaction.ts";
import { budgetsIn } from "../db/prices-and-budgets.ts";
import { type BudgetUse, budgetsOf } from "../usage/budgets.ts";
import { addDays, comparedPeriod, type Day, dayOf, monthBefore, type Window } from "../usage/days.ts";
import { amountColumn, chooseCost, type DaySums, figures, readAnswer, readDaySums, readTotalBasis } from "./amounts.ts";
import type { Answer, Basis } from "./answer.ts";
import { type AskedMetric, coverageConditions, isCost, literal, type Question } from "./question.ts";
import { type Query, readBasis } from "./scope.ts";

const OVERVIEW_SPLITS = ["project", "line_item", "model", "accessor", "tags"] as const;
/** How many groups of a split are read, the largest first. The group that rose the most is looked for among them. */
const LISTED_MAX = 100;

export type Overview = Awaited<ReturnType<typeof overview>>;
export type ReportData = { readonly overview: Overview; readonly budgets: readonly BudgetUse[] };

type AskedDays = { readonly period: Window; readonly project?: string | undefined };

/** The part of a question that asks for these days and the days to compare them with. Leaves out the `name` that a View's period has. */
export function comparedQuestion({ period: { start, end }, project }: AskedDays) {
  const period = { start, end };
  return { period, before: comparedPeriod(period), projects: project === undefined ? undefined : [project] };
}

/** Throws InvalidQuestion if there is no such project. */
export async function readReportData(
  db: Database,
  asked: AskedDays,
  now: Date,
  { secondsMax = USAGE_SECONDS, signal, cache }: ReadOptions = {},
): Promise<ReportData> {
  const read = (query: Query) => overview(query, comparedQuestion(asked), dayOf(now));
  const shown = await queryAtOneMoment(db, read, { secondsMax, signal, cache });
  const budgets = await readAtOneMoment(db, (tx) => budgetsIn(tx, asked.period), secondsMax);
  return { overview: shown, budgets: budgetsOf(budgets, shown.total.question.project) };
}

/** Each split is of the cost or, if cost has no such split, of the main metric. Throws InvalidQuestion if there is no such project. */
export async function overview(query: Query, asked: Pick<Question, "period" | "before" | "projects">, today: Day) {
  const question = { ...asked, limit: LISTED_MAX, sort: "amount", metric: "hours" } as const;
  const month = monthOf(asked.period, today);
  const firstDay = asked.before?.start ?? asked.period.start;
  // The states of days are read from this day on. It is the same for all questions, so that one statement serves them all.
  const since = month && earlier(month.before.start, firstDay);
  const { totalGrouping, available, basis } = await readTotalBasis(query, { ...question, grouping: "none" }, since);
  const days = since
    ? { start: earlier(since, addDays(today, -HISTORY_DAYS)), end: today }
    : { start: firstDay, end: asked.period.end };
  const usage = await readDaySums(query, { ...question, grouping: totalGrouping }, basis.scope, days);
  const reported = figures(usage, question);
  const metric = mainMetric(reported);
  const total = await readAnswer(query, { ...question, metric, grouping: totalGrouping }, basis, { sums: usage });
  const asCost = await chooseCost(query, question, total.projectCount, since);
  const costByDay = asCost && (await readDaySums(query, asCost.question, asCost.basis.scope, days));
  const cost = asCost && (await readAnswer(query, asCost.question, asCost.basis, { sums: costByDay }));
  const splits: Answer[] = [];
  for (const grouping of OVERVIEW_SPLITS) {
    const costMetric = cost?.available.groupings.includes(grouping) ? cost.question.metric : undefined;
    const hasLineItems = splits.some((one) => one.question.grouping === "line_item");
    // The line items of the bill already show what usage by model would show.
    if (!costMetric && (!available.includes(grouping) || (grouping === "model" && hasLineItems))) continue;
    if (grouping === "project" && total.projectCount < 2) continue;
    const split = { ...question, metric: costMetric ?? metric, grouping };
    // These splits are read from the total's series. With the same `since`, their statement for the states of days is the same, and runs once.
    const isOfTotal = grouping === "project" || split.metric === "estimated_cost";
    const splitBasis = await readBasis(query, split, isOfTotal ? since : undefined);
    splits.push(await readAnswer(query, split, splitBasis, { countsUnpriced: false }));
  }
  const mainQuestion = asCost?.question ?? { ...question, metric, grouping: totalGrouping };
  const monthSoFar =
    month && (await readMonthSoFar(query, { ...mainQuestion, ...month, limit: 1 }, costByDay ?? usage, today, since));
  return { period: asked.period, figures: reported, total, cost, splits, monthSoFar };
}

function earlier(one: Day, other: Day): Day {
  return one < other ? one : other;
}

/** Hours, unless the service reports none or only 0. */
function mainMetric(reported: ReturnType<typeof figures>): AskedMetric {
  const used = reported.filter(({ amount }) => amount !== "0").map(({ metric }) => metric);
  if (used.includes("hours")) return "hours";
  return used.includes("requests") ? "requests" : (used[0] ?? "hours");
}

/** An estimate of a whole month, as rounded decimal text. */
export type Forecast = { readonly forecast: string; readonly low: string; readonly high: string };

/** The current month up to yesterday or, on its first day, up to that day. Undefined if the period ends in an earlier month. */
function monthOf(period: Window, today: Day) {
  if (period.end.slice(0, 7) < today.slice(0, 7)) return undefined;
  const start = `${today.slice(0, 7)}-01`;
  const end = addDays(today, -1);
  return { period: { start, end: end < start ? today : end }, before: monthBefore(start) };
}

async function readMonthSoFar(query: Query, question: Question, sums: DaySums, today: Day, since?: Day) {
  const basis = await readBasis(query, question, since);
  const answer = await readAnswer(query, question, basis, { countsUnpriced: false, sums });
  return { period: question.period, answer, forecast: await readForecast(query, question, basis.scope, sums, today) };
}

/** How far back usage_export.month_forecast looks. */
const HISTORY_DAYS = 70;
/** With more projects there is no forecast: finding the days that were read, project by project, would take a second. */
const FORECAST_PROJECTS_MAX = 1_000;

/** Forecasts as for budgets (docs/forecast.md). A day that any project lacks is estimated. Returns null also with fewer than 14 known days. */
async function readForecast(query: Query, question: Question, scope: Basis["scope"], sums: DaySums, today: Day) {
  const isUnpriced = isCost(question.metric) && scope.currency === undefined;
  if (scope.projectCount === 0 || scope.projectCount > FORECAST_PROJECTS_MAX || isUnpriced) return null;
  const history = { start: addDays(today, -HISTORY_DAYS), end: today };
  const amountOn = ({ usage_date: day, ...sum }: DaySums[number]) =>
    `(date ${literal(day)}, ${sum[amountColumn(question)] ?? "null"}::numeric)`;
  const [found] = await query<Forecast>(`
with amount (usage_date, amount) as (
  -- A row of NULLs types the columns, even if there is no sum.
  values ${[...sums.map(amountOn), "(null::date, null::numeric)"].join(", ")}
), covered as (
  select usage_date, bool_and(fetched_at is not null and status <> 'missing') as is_read,
    bool_and(usage_export.is_known(usage_date, finality, fetched_at)) as is_known
  from bi.coverage
  where ${coverageConditions(question, scope, [history])}
  group by usage_date
), day as (
  select usage_date, coalesce(amount, 0) as amount, is_known from covered left join amount using (usage_date) where is_read
)
select trim_scale(forecast)::text as forecast, trim_scale(low)::text as low, trim_scale(high)::text as high
from (
  select array_agg(usage_date) as days, array_agg(amount) as amounts, array_agg(is_known) as are_known from day
) history
cross join lateral usage_export.month_forecast(date ${literal(today)}, days, amounts, are_known)
where forecast is not null`);
  return found ?? null;
}
