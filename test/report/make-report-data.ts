// The data of reports for tests: an ordinary report of any size, and one with gaps and restatements.

import type { CostChange, CostPart } from "../../src/report/cost-change.ts";
import type {
  Breakdown,
  BreakdownGroup,
  Ranking,
  ReportData,
  SeriesCoverage,
  Shortfall,
} from "../../src/report/report-data.ts";
import type { ChangePart, UsageChange } from "../../src/report/usage-change.ts";
import { addDays, type Day, dayCount, daysOf } from "../../src/usage/days.ts";
import type { SliceStatus } from "../../src/usage/slice.ts";

export const LAST_DAY = "2026-11-20";

export type Size = { readonly days: number; readonly groups: number; readonly series: number };

export const WHOLE: Shortfall = { incompleteDays: 0, incompleteDaysBefore: 0, unreadDays: 0, unreadDaysBefore: 0 };

/** Every day is complete, and nothing is restated. The data have no random part, so they are the same each time. */
export function makeReportData(
  overrides: Partial<ReportData> = {},
  { days, groups, series }: Size = { days: 30, groups: 4, series: 5 },
): ReportData {
  const period = { start: addDays(LAST_DAY, 1 - days), end: LAST_DAY };
  const dayList = daysOf(period);
  return {
    period,
    before: { start: addDays(period.start, -days), end: addDays(period.start, -1) },
    madeAt: new Date("2026-11-21T02:20:00Z"),
    totals: {
      sources: [{ project: "production", grouping: "none" }],
      projectsLeftOut: [],
      lackingDays: [],
      metrics: [
        { metric: "hours", amount: "1619.7242069444444", before: "1480.25", byDay: [] },
        { metric: "requests", amount: "373381", before: "390112", byDay: [] },
        { metric: "tokens_in", amount: "0", before: "0", byDay: [] },
        { metric: "tokens_out", amount: null, before: null, byDay: [] },
        { metric: "tts_characters", amount: "9158866", before: "0", byDay: [] },
      ],
      ...WHOLE,
    },
    forecast: [],
    change: makeChange(period, groups),
    changeProjectsLeftOut: 0,
    billed: { ...makeChange(period, groups), metrics: [] },
    costs: [],
    costRowsLeftOut: 0,
    breakdowns: [makeBreakdown("model", dayList, groups), makeBreakdown("endpoint", dayList, Math.min(groups, 4))],
    rankings: [makeRanking("accessor", groups), makeRanking("tags", groups)],
    coverage: {
      days: dayList,
      series: Array.from({ length: series }, (_, i) => makeSeries(i, dayList)),
      seriesCount: series,
      counts: { complete: days * series, suspect: 0, failed: 0, missing: 0 },
      incompleteDays: [],
      dueThrough: LAST_DAY,
      gaps: [],
      gapsLeftOut: 0,
      undated: [],
    },
    restatements: { ...COUNTED, byDaysLate: [], largest: [] },
    budgets: [],
    ...overrides,
  };
}

/** From 1000 hours: a new model, a vanished one, and others that rose and fell. */
function makeChange(period: UsageChange["period"], groups: number): UsageChange {
  const length = dayCount(period);
  const changes = ["+210", "-96.25", "+40.5", "-12", "+7", "0", "-3.5", "+1"].slice(0, groups);
  const parts = changes.map((change, i): ChangePart => {
    const status = i === 2 ? "new" : i === 3 ? "vanished" : change === "0" ? "same" : "changed";
    const before = status === "new" ? 0 : status === "vanished" ? 12 : 120;
    const after = before + Number(change);
    return {
      ...{ part: "group", group: MODELS[i] ?? `group ${i}`, project: null, status, groups: 1 },
      ...{ before: String(before), after: String(after), change: String(Number(change)) },
      ...{
        firstDay: status === "new" ? LAST_DAY : null,
        lastDay: status === "vanished" ? addDays(period.start, -1) : null,
      },
    };
  });
  const sum = changes.reduce((all, change) => all + Number(change), 0);
  const amounts = { before: "1000", after: String(1000 + sum + 5), change: String(sum + 5) };
  const rest = { group: null, project: null, status: null, groups: 1, firstDay: null, lastDay: null } as const;
  const inBefore = parts.reduce((all, { before }) => all + Number(before), 0);
  parts.push({
    ...{
      ...rest,
      part: "not attributed",
      before: String(1000 - inBefore),
      after: String(1005 - inBefore),
      change: "5",
    },
  });
  return {
    period,
    before: { start: addDays(period.start, -length), end: addDays(period.start, -1) },
    projects: ["production", "staging"],
    lackingDays: [],
    notFinalDays: [],
    metrics: [
      {
        ...{
          metric: "hours",
          ...amounts,
          compared: amounts,
          notCompared: null,
          daysCompared: length,
          daysInAll: length,
        },
        breakdowns: [
          {
            ...{ grouping: "model", daysCompared: length, daysInAll: length, parts },
            newGroups: parts.filter(({ status }) => status === "new").length,
            vanishedGroups: parts.filter(({ status }) => status === "vanished").length,
          },
        ],
      },
    ],
  };
}

const COUNTED = {
  sources: [{ project: "production", grouping: "none" }],
  metrics: ["hours", "requests"],
} as const;

const MODELS = [
  "nova-3",
  "nova-2-general",
  "aura-2-thalia-en",
  "whisper-large",
  "nova-3-medical",
  "base",
  "flux-general-en",
  "enhanced",
];
const ENDPOINTS = ["listen", "speak", "agent", "read"];

function makeBreakdown(grouping: "model" | "endpoint", days: readonly Day[], groupCount: number): Breakdown {
  const names = grouping === "model" ? MODELS : ENDPOINTS;
  return {
    grouping,
    projects: ["production", "staging"],
    days,
    incompleteDays: [],
    unreadDays: [],
    groups: Array.from({ length: Math.min(groupCount, 8) }, (_, i) => makeGroup(names[i] ?? `group ${i}`, i, days)),
    rest: groupCount > 8 ? { ...makeGroup("rest", 8, days), groupCount: groupCount - 8 } : undefined,
  };
}

/** The amounts are lower on two days of each week, as on weekends. */
export function makeGroup(group: string | null, rank: number, days: readonly Day[]): BreakdownGroup {
  const week = [1, 0.94, 1.02, 0.98, 0.87, 0.34, 0.29];
  const amounts = days.map((_, day) => ((week[day % 7] ?? 1) * (60 + ((day * 37) % 17)) * 8) / (rank + 1.5) ** 1.4);
  return {
    group,
    hours: amounts.map((amount) => (amount / 9).toFixed(10)),
    requests: amounts.map((amount) => String(Math.round(amount * 41))),
  };
}

const RANKED_NAMES: Readonly<Record<Ranking["grouping"], (i: number) => string>> = {
  model: (i) => (i === 1 ? '["nova-3","aura-2"]' : `nova-${i}`),
  accessor: (i) => `8f3c${i}a2e-55d1-4b0e`,
  tags: (i) => (i === 2 ? "[]" : JSON.stringify(["batch", `team-${i}`])),
};

export function makeRanking(grouping: Ranking["grouping"], groupCount: number): Ranking {
  return {
    grouping,
    projects: ["production"],
    ...WHOLE,
    groups: Array.from({ length: Math.min(groupCount, 10) }, (_, i) => ({
      project: "production",
      projectId: "project-0",
      group: RANKED_NAMES[grouping](i),
      comment: grouping === "accessor" && i % 2 === 0 ? `service ${i}` : null,
      hours: (700 / (i + 1)).toFixed(6),
      requests: String(Math.round(170_000 / (i + 1))),
      hoursBefore: i === 1 ? null : (650 / (i + 1)).toFixed(6),
      requestsBefore: i === 1 ? null : String(Math.round(150_000 / (i + 1))),
    })),
    groupCount,
    hours: grouping === "accessor" ? "1619.7242069444444" : null,
    requests: grouping === "accessor" ? "373381" : null,
  };
}

const GROUPINGS = ["none", "model", "endpoint", "accessor", "tags"];

export function makeSeries(
  rank: number,
  days: readonly Day[],
  statuses?: readonly (SliceStatus | undefined)[],
): SeriesCoverage {
  return {
    project: rank < 5 ? "production" : `project ${Math.floor(rank / 5)}`,
    projectId: `project-${Math.floor(rank / 5)}`,
    grouping: GROUPINGS[rank % 5] ?? "none",
    filter: rank % 7 === 6 ? "diarized-listen" : "all",
    statuses: statuses ?? days.map(() => "complete"),
    freshThrough: days.at(-1) ?? null,
    dueThrough: days.at(-1) ?? null,
    fetchedAt: new Date("2026-11-21T02:15:31Z"),
  };
}

/** Some days of some series are missing, failed, suspect or unread, and some numbers changed. */
export function makeTroubledData(size: Size = { days: 30, groups: 11, series: 8 }): ReportData {
  const whole = makeReportData({}, size);
  const { days } = whole.coverage;
  const statusOfDay = new Map<Day, SliceStatus>([
    [addDays(LAST_DAY, 0), "missing"],
    [addDays(LAST_DAY, -1), "missing"],
    [addDays(LAST_DAY, -9), "failed"],
    [addDays(LAST_DAY, -15), "suspect"],
  ]);
  const seriesWithGaps = whole.coverage.series.map((series, i) =>
    i > 2
      ? series
      : {
          ...series,
          statuses: days.map((day) =>
            i === 1 && day < "2026-10-28" ? undefined : (statusOfDay.get(day) ?? "complete"),
          ),
          freshThrough: addDays(LAST_DAY, -16),
        },
  );
  const incompleteDays = [...statusOfDay.keys()].sort();
  return {
    ...whole,
    totals: { ...whole.totals, incompleteDays: 4, unreadDaysBefore: 12 },
    breakdowns: whole.breakdowns.map((one) =>
      one.grouping === "model"
        ? {
            ...one,
            incompleteDays,
            unreadDays: days.slice(0, 3),
            groups: one.groups.map((group) => emptied(group, days)),
          }
        : one,
    ),
    coverage: {
      ...whole.coverage,
      series: seriesWithGaps,
      counts: { complete: days.length * size.series - 12, missing: 6, failed: 3, suspect: 3 },
      incompleteDays,
      gaps: [
        {
          project: "production",
          projectId: "project-0",
          grouping: "none",
          filter: "all",
          start: addDays(LAST_DAY, -1),
          end: LAST_DAY,
          status: "missing",
          error: null,
        },
        {
          project: "production",
          projectId: "project-0",
          grouping: "model",
          filter: "all",
          start: addDays(LAST_DAY, -9),
          end: addDays(LAST_DAY, -9),
          status: "failed",
          error: "the service answered 503 after 5 attempts: upstream connect error",
        },
        {
          project: "production",
          projectId: "project-0",
          grouping: "endpoint",
          filter: "all",
          start: addDays(LAST_DAY, -15),
          end: addDays(LAST_DAY, -15),
          status: "suspect",
          error: null,
        },
      ],
    },
    budgets: [],
    restatements: {
      ...COUNTED,
      byDaysLate: [1, 2, 3, 4, 5, 6, 7].map((daysLate) => ({ daysLate, numbers: Math.round(240 / daysLate ** 1.7) })),
      largest: [
        {
          project: "production",
          grouping: "none",
          filter: "all",
          day: "2026-11-12",
          group: null,
          metric: "hours",
          old: "51.2",
          new: "58.4402777778",
          seenAt: new Date("2026-11-14T02:15:30Z"),
        },
        {
          project: "production",
          grouping: "tags",
          filter: "all",
          day: "2026-11-11",
          group: '["batch","team-1"]',
          metric: "requests",
          old: null,
          new: "1204",
          seenAt: new Date("2026-11-13T02:15:30Z"),
        },
      ],
    },
  };
}

/** Sets the last two days to 0: they are missing, so there is nothing to draw. */
function emptied(group: BreakdownGroup, days: readonly Day[]): BreakdownGroup {
  const cut = (amounts: readonly string[]) =>
    amounts.map((amount, i) => ((days[i] ?? "") >= addDays(LAST_DAY, -1) ? "0" : amount));
  return { ...group, hours: cut(group.hours), requests: cut(group.requests) };
}

/** From 100 USD: a price that rose, a new model, and days that are not compared. */
export function makeCost(part: Partial<CostChange> = {}): CostChange {
  return {
    currency: "USD",
    projects: ["production"],
    ...{ before: "100", after: "131.5", change: "31.5" },
    compared: { before: "100", after: "130", change: "30", volume: "18", price: "12" },
    ...{ daysCompared: 30, daysLacking: 0, isFinal: true, unpricedModels: 0 },
    parts: [
      makeCostPart({ group: "nova-3", before: "100", after: "125", change: "25", volume: "13", price: "12" }),
      makeCostPart({ group: "aura-2", after: "5", change: "5", volume: "5", status: "new" }),
      makeCostPart({ part: "days not compared", after: "1.5", change: "1.5", volume: null, price: null, status: null }),
    ],
    ...part,
  };
}

export function makeCostPart(part: Partial<CostPart>): CostPart {
  return {
    ...{ part: "group", group: null, status: "changed", groups: 1 },
    ...{ before: "0", after: "0", change: "0", volume: "0", price: "0" },
    ...part,
  };
}
