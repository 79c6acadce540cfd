// Reads the data of a report in one snapshot, so that all its figures agree with each other.

import { isZero } from "../../report/format.ts";
import type { Breakdown, MetricTotal, Ranking, ReportData } from "../../report/report-data.ts";
import type { UsageChange } from "../../report/usage-change.ts";
import { addDays, dayCount, type Window } from "../../usage/days.ts";
import { budgetsIn } from "../budgets.ts";
import type { Database } from "../connection/database.ts";
import { readSnapshot, type Tx } from "../connection/transaction.ts";
import { chooseCostSources, countCostRows, readCostChange } from "./cost-change.ts";
import { readCoverage, reportSeries } from "./coverage.ts";
import { readForecast } from "./forecast.ts";
import { readRestatements } from "./restatements.ts";
import { chooseSources, countLackingDays, type ReportSeries, seriesBy } from "./sources.ts";
import { readBreakdown, readRanking, readTotals } from "./usage.ts";
import { type ChangeQuestion, readBilledChange, readUsageChange } from "./usage-change.ts";

type ReadReportOptions = {
  readonly statementSecondsMax?: number | undefined;
  /** Checked before each part is read. */
  readonly signal?: AbortSignal | undefined;
  /** The change of the cost is left out if it is calculated from more rows of usage by model. */
  readonly costRowsMax?: number | undefined;
  /** Called with each breakdown as soon as it is read, while the database reads the next part. It must not throw. */
  readonly onBreakdown?: ((breakdown: Breakdown) => void) | undefined;
};

/** `now` is the time that the page shows. */
export async function readReportData(
  db: Database,
  period: Window,
  now: Date,
  { statementSecondsMax, signal, costRowsMax = Infinity, onBreakdown }: ReadReportOptions = {},
): Promise<ReportData> {
  const before = windowBefore(period);
  const readAll = async (tx: Tx): Promise<ReportData> => {
    const series = await reportSeries(tx, before, period);
    const sources = chooseSources(series);
    const metrics = await readTotals(tx, sources.totals, before, period);
    signal?.throwIfAborted();
    const periods = changePeriods(before, period, sources.totals);
    const question = changeQuestion(periods, sources.totals, series, metrics);
    const change = await readUsageChange(tx, question);
    signal?.throwIfAborted();
    const sourcesOfCost = await chooseCostSources(tx, question);
    const billed = await readBilled(tx, { ...question, projects: sourcesOfCost.billed });
    const estimated = { ...question, projects: sourcesOfCost.estimated };
    const costRows = await countCostRows(tx, estimated);
    const costs = costRows > costRowsMax ? [] : await readCostChange(tx, estimated);
    const breakdowns: Breakdown[] = [];
    for (const grouping of ["model", "endpoint"] as const) {
      signal?.throwIfAborted();
      const ofGrouping = seriesBy(series, grouping);
      if (ofGrouping.length === 0) continue;
      const breakdown = await readBreakdown(tx, grouping, ofGrouping, period);
      breakdowns.push(breakdown);
      // By then the next statement is on its way.
      if (onBreakdown) setImmediate(onBreakdown, breakdown);
    }
    const rankings: Ranking[] = [];
    for (const grouping of ["accessor", "tags"] as const) {
      signal?.throwIfAborted();
      const ofGrouping = seriesBy(series, grouping);
      if (ofGrouping.length > 0) rankings.push(await readRanking(tx, grouping, ofGrouping, before, period));
    }
    signal?.throwIfAborted();
    return {
      period,
      before,
      madeAt: now,
      totals: {
        sources: sources.totals.map(({ project, grouping }) => ({ project, grouping })),
        projectsLeftOut: sources.projectsLeftOut,
        metrics,
        ...countLackingDays(sources.totals),
      },
      forecast: await readForecast(tx, sources.totals, period, metrics),
      change,
      billed,
      costs,
      costRowsLeftOut: costRows > costRowsMax ? costRows : 0,
      breakdowns,
      rankings,
      coverage: await readCoverage(tx, series, period),
      restatements: await readRestatements(tx, sources.restatements, period, metrics),
      budgets: await budgetsIn(db, tx, period),
    };
  };
  return readSnapshot(db, readAll, statementSecondsMax);
}

/** Split by each dimension of billing that is read. */
async function readBilled(tx: Tx, question: ChangeQuestion): Promise<UsageChange> {
  const { period, before, projects } = question;
  if (projects?.length === 0) return { period, before, projects, metrics: [], notFinalDays: [], lackingDays: [] };
  return readBilledChange(tx, { ...question, groupings: undefined });
}

/** The change is split by the first of these groupings that is read. */
const CHANGE_GROUPINGS = ["model", "endpoint", "accessor", "tags", "method", "deployment", "feature_set"] as const;
const CHANGE_GROUPS_MAX = 8;

const WEEK_DAYS = 7;

/** The last week and the one before it if nothing was read of the period before, as in the first weeks of an installation. */
function changePeriods(
  before: Window,
  period: Window,
  totals: readonly ReportSeries[],
): Pick<ChangeQuestion, "period" | "before"> {
  const hasBefore = countLackingDays(totals).unreadDaysBefore < totals.length * dayCount(before);
  if (hasBefore || dayCount(period) < 2 * WEEK_DAYS) return { period, before };
  const week = { start: addDays(period.end, 1 - WEEK_DAYS), end: period.end };
  return { period: week, before: windowBefore(week) };
}

function changeQuestion(
  periods: Pick<ChangeQuestion, "period" | "before">,
  totals: readonly ReportSeries[],
  series: readonly ReportSeries[],
  metrics: readonly MetricTotal[],
): ChangeQuestion {
  const hours = metrics.find(({ metric }) => metric === "hours");
  const hasHours = [hours?.amount, hours?.before].some((amount) => amount != null && !isZero(amount));
  const grouping = CHANGE_GROUPINGS.find((one) => seriesBy(series, one).length > 0);
  return {
    ...periods,
    projects: totals.map(({ project }) => project),
    metrics: [hasHours ? "hours" : "requests"],
    groupings: grouping ? [grouping] : [],
    groupsMax: CHANGE_GROUPS_MAX,
  };
}

/** The same number of days, right before the period. */
function windowBefore(period: Window): Window {
  return { start: addDays(period.start, -dayCount(period)), end: addDays(period.start, -1) };
}
