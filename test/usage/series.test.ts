import { expect, test } from "vitest";
import { type Filter, filterKey, seriesKey } from "../../src/usage/series.ts";
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
