// Reads the data of a report, or the part of it that a page of the dashboard shows, in one snapshot, so that all figures agree with
// each other. Only the forecast of a page, an estimate, may be of a moment later.

import { isZero } from "../../report/format.ts";
import type {
  Breakdown,
  ChangeData,
  MetricTotal,
  QualityData,
  Ranking,
  ReportData,
  TrustData,
  UsageData,
} from "../../report/report-data.ts";
import type { UsageChange } from "../../report/usage-change.ts";
import { addDays, dayCount, periodBefore, type Window, windowBefore } from "../../usage/days.ts";
import { budgetsIn } from "../budgets.ts";
import type { Database } from "../connection/database.ts";
import { readSnapshot, type Tx } from "../connection/transaction.ts";
import { chooseCostSources, countCostRows, readCostChange } from "./cost-change.ts";
import { readCoverage, reportSeries, summarizeCoverage } from "./coverage.ts";
import { readForecast } from "./forecast.ts";
import { readRestatements } from "./restatements.ts";
import {
  chooseSources,
  countLackingDays,
  lackingDays,
  type ReportSeries,
  type SeriesIndex,
  seriesBy,
} from "./sources.ts";
import { readTrust } from "./trust.ts";
import { readBreakdown, readRanking, readTotals } from "./usage.ts";
import { type ChangeQuestion, readBilledChange, readUsageChange } from "./usage-change.ts";

/** What a page is about. `before` is what it is compared with; left out, it is compared with nothing. */
export type ReportQuestion = {
  readonly period: Window;
  readonly before: Window | undefined;
  /** All projects if it is left out. */
  readonly project?: string | undefined;
};

export type ReadOptions = {
  readonly statementSecondsMax?: number | undefined;
  /** Checked before each part is read. */
  readonly signal?: AbortSignal | undefined;
};

type ForecastOptions = {
  /** The forecast is left out if it is of more projects. */
  readonly forecastProjectsMax?: number | undefined;
};

type ChangeOptions = {
  /** The change of usage is left out if it is of more projects. */
  readonly changeProjectsMax?: number | undefined;
  /** The change of the cost is left out if it is calculated from more rows of usage by model and of billing. */
  readonly costRowsMax?: number | undefined;
};

type UsageOptions = {
  readonly breakdowns: readonly Breakdown["grouping"][];
  readonly rankings: readonly Ranking["grouping"][];
};

type Compared = {
  /** The days that the report compares with; left out, the period before. */
  readonly before?: Window | undefined;
};

/** `now` is the time that the page shows. */
export async function readReportData(
  db: Database,
  period: Window,
  now: Date,
  { before = periodBefore(period), ...options }: ReadOptions & ChangeOptions & ForecastOptions & Compared = {},
): Promise<ReportData> {
  return read(db, { period, before }, options, async (scope) => ({
    madeAt: now,
    ...(await usageData(scope, { breakdowns: ["model", "endpoint"], rankings: ["accessor", "tags"] })),
    forecast: await forecastOf(scope, options),
    ...(await changeData(scope, options)),
    ...(await qualityData(scope)),
    budgets: await budgetsIn(db, scope.tx, period),
  }));
}

export async function readUsageData(
  db: Database,
  question: ReportQuestion,
  options: ReadOptions & UsageOptions & ForecastOptions,
): Promise<UsageData> {
  let forecasting: Promise<UsageData["forecast"]> = Promise.resolve([]);
  const data = await read(db, question, options, (scope) => {
    // Beside the other parts, as it takes as long as two of them. It is not awaited here: the embedded database has one connection.
    forecasting = readSnapshot(db, (tx) => forecastOf({ ...scope, tx }, options), options.statementSecondsMax);
    // If another part fails, nobody waits for it.
    forecasting.catch(() => {});
    return usageData(scope, options);
  });
  return { ...data, forecast: await forecasting };
}

function forecastOf(
  { tx, sources, period, metrics }: Scope,
  { forecastProjectsMax = Infinity }: ForecastOptions,
): Promise<UsageData["forecast"]> {
  return readForecast(tx, sources.totals, period, metrics, forecastProjectsMax);
}

export async function readChangeData(
  db: Database,
  question: ReportQuestion,
  options: ReadOptions & ChangeOptions,
): Promise<ChangeData> {
  return read(db, question, options, (scope) => changeData(scope, options));
}

export async function readQualityData(
  db: Database,
  question: ReportQuestion,
  options: ReadOptions,
): Promise<QualityData & TrustData> {
  return read(db, question, options, async (scope) => ({
    ...(await qualityData(scope)),
    ...(await readTrust(scope.tx, scope.projectIds, scope.period)),
  }));
}

/** What every part is read from. */
type Scope = {
  readonly tx: Tx;
  readonly period: Window;
  /** The period before, where the question names none. */
  readonly before: Window;
  readonly isCompared: boolean;
  /** The asked project; undefined for all. */
  readonly project: string | undefined;
  /** Those of the asked project; undefined for all. */
  readonly projectIds: readonly string[] | undefined;
  readonly series: SeriesIndex;
  readonly sources: ReturnType<typeof chooseSources>;
  readonly metrics: readonly MetricTotal[];
  /** Throws if nobody waits for the data any more. */
  readonly check: () => void;
};

async function read<T>(
  db: Database,
  { period, before: asked, project }: ReportQuestion,
  { statementSecondsMax, signal }: ReadOptions,
  readPart: (scope: Scope) => Promise<T>,
): Promise<T> {
  const before = asked ?? periodBefore(period);
  const readAll = async (tx: Tx) => {
    const series = await reportSeries(tx, before, period, project);
    const sources = chooseSources(series);
    const metrics = await readTotals(tx, sources.totals, before, period);
    const check = () => signal?.throwIfAborted();
    const projectIds = project === undefined ? undefined : [...series.projects.keys()];
    const question = { period, before, isCompared: asked !== undefined, project, projectIds };
    return readPart({ ...question, tx, series, sources, metrics, check });
  };
  return readSnapshot(db, readAll, statementSecondsMax);
}

async function usageData(
  { tx, period, before, isCompared, series, sources, metrics, check }: Scope,
  { breakdowns, rankings }: UsageOptions,
): Promise<Omit<UsageData, "forecast">> {
  const shown: Breakdown[] = [];
  for (const grouping of breakdowns) {
    check();
    const ofGrouping = seriesBy(series, grouping);
    if (ofGrouping.length > 0) shown.push(await readBreakdown(tx, grouping, ofGrouping, period));
  }
  const ranked: Ranking[] = [];
  for (const grouping of rankings) {
    check();
    const ofGrouping = seriesBy(series, grouping);
    if (ofGrouping.length > 0) ranked.push(await readRanking(tx, grouping, ofGrouping, before, period));
  }
  check();
  const coverage = summarizeCoverage(series, period);
  return {
    period,
    before: isCompared ? before : undefined,
    totals: {
      sources: sources.totals.map(({ project, grouping }) => ({ project, grouping })),
      projectsLeftOut: sources.projectsLeftOut,
      metrics,
      ...countLackingDays(sources.totals),
      lackingDays: lackingDays(sources.totals, coverage.days),
    },
    coverage,
    breakdowns: shown,
    rankings: ranked,
  };
}

async function changeData(
  { tx, period, before, project, series, sources, metrics, check }: Scope,
  { changeProjectsMax = Infinity, costRowsMax = Infinity }: ChangeOptions,
): Promise<ChangeData> {
  const periods = changePeriods(before, period, sources.totals);
  const question = changeQuestion(periods, sources.totals, series, metrics);
  check();
  const isLeftOut = sources.totals.length > changeProjectsMax;
  const change = isLeftOut ? noChange(question) : await readUsageChange(tx, question);
  const ofUsage = { change, changeProjectsLeftOut: isLeftOut ? sources.totals.length : 0 };
  check();
  // Not only of the projects with a total of usage: billing is read on its own.
  const ofCost = { ...question, projects: project === undefined ? undefined : [project] };
  const sourcesOfCost = await chooseCostSources(tx, ofCost);
  const costRows = await countCostRows(tx, ofCost, sourcesOfCost);
  if (costRows > costRowsMax) return { ...ofUsage, billed: noChange(question), costs: [], costRowsLeftOut: costRows };
  return {
    ...ofUsage,
    billed: await readBilled(tx, { ...ofCost, projects: sourcesOfCost.billed }),
    costs: await readCostChange(tx, { ...ofCost, projects: sourcesOfCost.estimated }),
    costRowsLeftOut: 0,
  };
}

async function qualityData({ tx, period, projectIds, series, sources, metrics, check }: Scope): Promise<QualityData> {
  check();
  const coverage = await readCoverage(tx, series, period, projectIds);
  check();
  return { period, coverage, restatements: await readRestatements(tx, sources.restatements, period, metrics) };
}

/** Split by each dimension of billing that is read. */
async function readBilled(tx: Tx, question: ChangeQuestion): Promise<UsageChange> {
  if (question.projects?.length === 0) return noChange(question);
  return readBilledChange(tx, { ...question, groupings: undefined });
}

function noChange({ period, before }: Pick<ChangeQuestion, "period" | "before">): UsageChange {
  return { period, before, projects: [], metrics: [], notFinalDays: [], lackingDays: [] };
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
  const hasBefore = totals.length === 0 || countLackingDays(totals).unreadDaysBefore < totals.length * dayCount(before);
  if (hasBefore || dayCount(period) < 2 * WEEK_DAYS) return { period, before };
  const week = { start: addDays(period.end, 1 - WEEK_DAYS), end: period.end };
  return { period: week, before: windowBefore(week) };
}

function changeQuestion(
  periods: Pick<ChangeQuestion, "period" | "before">,
  totals: readonly ReportSeries[],
  series: SeriesIndex,
  metrics: readonly MetricTotal[],
): ChangeQuestion {
  const hours = metrics.find(({ metric }) => metric === "hours");
  const hasHours = [hours?.amount, hours?.before].some((amount) => amount != null && !isZero(amount));
  const grouping = CHANGE_GROUPINGS.find((one) => seriesBy(series, one).length > 0);
  return {
    ...periods,
    projects: totals.map(({ projectId }) => projectId),
    metrics: [hasHours ? "hours" : "requests"],
    groupings: grouping ? [grouping] : [],
    groupsMax: CHANGE_GROUPS_MAX,
  };
}
