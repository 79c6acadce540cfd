import { expect, test } from "vitest";
import {
  addsUp,
  type Dimension,
  differsIn2026,
  dimension,
  filterIn,
  groupingIn,
  groupingNoun,
  memberNoun,
  TOTAL_GROUPINGS,
} from "../../src/usage/dimensions.ts";
import { type Filter, filterKey, seriesKey, seriesText } from "../../src/usage/series.ts";
import { ALL_USAGE, PROJECT } from "./sample-request.ts";

const diarized: Filter = { name: "diarized", features: { diarize: "true" }, dimensions: { endpoint: "listen" } };

test("a filter without conditions is all usage, whatever its name", () => {
  expect(filterKey(ALL_USAGE)).toBe("{}");
  expect(filterKey({ ...ALL_USAGE, name: "everything" })).toBe("{}");
});

test("the order in which conditions are written does not matter", () => {
  const one = { name: "a", features: { diarize: "true", punctuate: "false" }, dimensions: {} };
  const other = { name: "b", features: { punctuate: "false", diarize: "true" }, dimensions: {} };
  expect(filterKey(one)).toBe(filterKey(other));
  expect(filterKey(one)).toBe('{"features":{"diarize":"true","punctuate":"false"}}');
});

test.each<[string, Partial<Filter>]>([
  ["another value", { features: { diarize: "false" } }],
  ["another feature", { features: { utterances: "true" } }],
  ["a further feature", { features: { diarize: "true", utterances: "true" } }],
  ["another dimension", { dimensions: { method: "listen" } }],
  ["no dimension", { dimensions: {} }],
])("a filter with %s is another one", (_, part) => {
  expect(filterKey({ ...diarized, ...part })).not.toBe(filterKey(diarized));
});

test("a feature is not a dimension of the same name", () => {
  const feature = { name: "a", features: { model: "x" }, dimensions: {} };
  const dimension = { name: "a", features: {}, dimensions: { model: "x" } };
  expect(filterKey(feature)).not.toBe(filterKey(dimension));
});

test("a series is identified by the project's id, not by its name", () => {
  const series = { project: PROJECT, source: "usage", grouping: "model", filter: ALL_USAGE } as const;
  expect(seriesKey({ ...series, project: { id: "p1", name: "renamed" } })).toBe(seriesKey(series));
  expect(seriesKey({ ...series, project: { id: "p2", name: "production" } })).not.toBe(seriesKey(series));
  expect(seriesKey({ ...series, grouping: "none" })).not.toBe(seriesKey(series));
  expect(seriesKey({ ...series, filter: diarized })).not.toBe(seriesKey(series));
  expect(seriesKey({ ...series, source: "billing" })).not.toBe(seriesKey(series));
});

test("a series is named by its project, grouping, filter and, for billing, its source", () => {
  const name = { project: "production", grouping: "model", filter: "all" };
  expect(seriesText(name)).toBe("production / model / all");
  expect(seriesText({ ...name, source: "usage" })).toBe(seriesText(name));
  expect(seriesText({ ...name, source: "billing" })).toBe("production / billing model / all");
});

test.each<[Dimension, "grouping" | "filter", string | null, boolean]>([
  ["model", "grouping", "models", true],
  // The filter has the same name, and takes ids in place of names.
  ["model", "filter", "model", true],
  ["tags", "grouping", "tags", false],
  ["tags", "filter", "tag", true],
  ["feature_set", "grouping", "feature_set", false],
  ["feature_set", "filter", null, true],
  ["method", "grouping", "method", false],
  ["method", "filter", "method", false],
])('in dialect "2026" %s as a %s is named %s', (name, use, other, isOther) => {
  const nameIn = use === "filter" ? filterIn : groupingIn;
  expect(nameIn("2026", name)).toBe(other);
  expect(nameIn("interface", name)).toBe(name);
  expect(differsIn2026(name, use)).toBe(isOther);
});

test("only groups of tags and of feature sets do not add up to the total", () => {
  expect(["tags", "feature_set", "model", "none"].map(addsUp)).toEqual([false, false, true, true]);
  expect(TOTAL_GROUPINGS).not.toContain("tags");
});

test("only a group of models, features or tags may have several values", () => {
  expect(["model", "feature_set", "tags"].map(memberNoun)).toEqual(["model", "feature", "tag"]);
  expect(["method", "none"].map(memberNoun)).toEqual([undefined, undefined]);
});

test("a grouping by no dimension, or by several, has no noun of its own", () => {
  expect(["accessor", "none", "accessor,tags"].map(groupingNoun)).toEqual(["API key", "none", "accessor,tags"]);
});

test("a name that is no dimension is an error", () => {
  expect(() => dimension("models" as Dimension)).toThrow('expected a dimension, got "models"');
});
