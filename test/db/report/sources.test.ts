import { expect, test } from "vitest";
import {
  type AlikeSeries,
  chooseSources,
  countLackingDays,
  incompleteAndUnreadDays,
  type ReportSeries,
  type SeriesIndex,
  seriesBy,
} from "../../../src/db/report/sources.ts";

type OneSeries = Omit<AlikeSeries, "seriesIds" | "projectIds"> & Pick<ReportSeries, "seriesId" | "projectId">;

/** A series that is complete on both days of the period and on both days before it. */
function series(grouping: OneSeries["grouping"], part: Partial<OneSeries> = {}): OneSeries {
  return {
    ...{ seriesId: 1, projectId: "p1", grouping, unfiltered: true, active: true },
    ...{ daysBefore: "cc", days: "cc" },
    ...part,
  };
}

const NAMES = new Map([
  ["p2", "development"],
  ["p1", "production"],
]);

/** Each series is a group of its own. */
function indexOf(all: readonly OneSeries[]): SeriesIndex {
  const known = new Set(all.map(({ projectId }) => projectId));
  const projects = new Map([...NAMES].filter(([id]) => known.has(id)));
  const alike = all.map(({ seriesId, projectId, ...one }) => ({
    ...one,
    seriesIds: [seriesId],
    projectIds: [projectId],
  }));
  return { projects, alike };
}

/** As a source of numbers. */
function source(grouping: OneSeries["grouping"], part: Partial<OneSeries> = {}): ReportSeries {
  const { unfiltered: _, active: __, ...one } = series(grouping, part);
  return { ...one, project: NAMES.get(one.projectId) ?? "" };
}

const other = { projectId: "p2" };
const filtered = { unfiltered: false };
const retired = { active: false };

type Case = readonly [name: string, series: readonly OneSeries[], expected: readonly string[]];

const TOTALS: readonly Case[] = [
  ["no series if there is none", [], []],
  [
    "the total, whatever else there is",
    [series("tags"), series("model"), series("endpoint"), series("none")],
    ["none"],
  ],
  ["the endpoints if there is no total", [series("accessor"), series("model"), series("endpoint")], ["endpoint"]],
  ["the models before the methods", [series("method"), series("model")], ["model"]],
  ["the methods before the accessors", [series("accessor"), series("method")], ["method"]],
  ["the accessors before the deployments", [series("deployment"), series("accessor")], ["accessor"]],
  ["the deployments before the tags", [series("deployment"), series("tags")], ["deployment"]],
  ["never tags or feature sets, which overlap", [series("tags"), series("feature_set")], []],
  ["never a filtered series", [series("none", filtered), series("model")], ["model"]],
  ["never a series that is no longer configured", [series("none", retired), series("model")], ["model"]],
  [
    "the series that covers more days than the total",
    [series("none", { daysBefore: "..", days: ".c" }), series("model")],
    ["model"],
  ],
  ["the total even if some of its days failed", [series("none", { days: "fm" }), series("model")], ["none"]],
  [
    "the total even if its newest day was read before it was over",
    [series("none", { days: "co" }), series("model")],
    ["none"],
  ],
  ["one series of each project", [series("model", other), series("none")], ["model", "none"]],
  ["no series of a project that has no day in the periods", [series("none", { daysBefore: "..", days: ".." })], []],
];

test.each(TOTALS)("the totals come from %s", (_, all, expected) => {
  const { totals, restatements } = chooseSources(indexOf(all));
  expect(totals.map(({ grouping }) => grouping)).toEqual(expected);
  expect(restatements).toEqual(expect.arrayContaining([...totals]));
});

const RESTATEMENTS: readonly Case[] = [
  ["the feature sets if no grouping adds up", [series("tags"), series("feature_set")], ["feature_set"]],
  ["the tags if there is no other unfiltered series", [series("none", filtered), series("tags")], ["tags"]],
  ["never a filtered series", [series("none", filtered)], []],
  ["never a series that is no longer configured, if there is no total", [series("none", retired)], []],
];

test.each(RESTATEMENTS)("restatements come from %s", (_, all, expected) => {
  expect(chooseSources(indexOf(all)).restatements.map(({ grouping }) => grouping)).toEqual(expected);
});

const LEFT_OUT: readonly Case[] = [
  ["that has a total", [series("tags"), series("none")], []],
  ["that is read by tags only", [series("tags"), series("model", other)], ["production"]],
  ["that is read under a filter only", [series("none", filtered)], ["production"]],
  ["that is no longer configured, named once", [series("none", retired), series("model", retired)], ["production"]],
  ["whose days are all before the period", [series("none", { ...retired, days: ".." })], []],
  ["that was not read yet", [series("tags", { daysBefore: "..", days: ".." })], []],
];

test.each(LEFT_OUT)("projectsLeftOut of a project %s", (_, all, expected) => {
  expect(chooseSources(indexOf(all)).projectsLeftOut).toEqual(expected);
});

test("seriesBy returns the series by a grouping that are unfiltered, configured and read", () => {
  const read = [series("model"), series("model", other)];
  const not = [
    series("endpoint"),
    series("model", filtered),
    series("model", retired),
    series("model", { daysBefore: "..", days: ".." }),
  ];
  expect(seriesBy(indexOf([...read, ...not]), "model")).toEqual([source("model", other), source("model")]);
});

test("incomplete and unread days are counted over all series, in both periods", () => {
  const sources = [
    source("none", { daysBefore: "..cc", days: "cosf" }),
    source("none", { daysBefore: "mccc", days: "mcc." }),
  ];
  expect(countLackingDays(sources)).toEqual({
    incompleteDays: 4,
    incompleteDaysBefore: 1,
    unreadDays: 1,
    unreadDaysBefore: 2,
  });
});

test("a day is incomplete or unread if it is that in at least one of the series", () => {
  const days = ["2026-03-16", "2026-03-17", "2026-03-18", "2026-03-19"];
  const sources = [source("model", { days: "ccf." }), source("model", { days: "omcc" })];
  expect(incompleteAndUnreadDays(sources, days)).toEqual({
    incompleteDays: ["2026-03-16", "2026-03-17", "2026-03-18"],
    unreadDays: ["2026-03-19"],
  });
});
