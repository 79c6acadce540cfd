import { expect, test } from "vitest";
import {
  addsUp,
  type Dimension,
  differsIn2026,
  dimension,
  filterIn,
  groupingIn,
  groupingNoun,
  isSet,
  memberOf,
  TOTAL_GROUPINGS,
} from "../../src/usage/dimensions.ts";

test.each<[Dimension, "grouping" | "filter", string | null, boolean]>([
  ["model", "grouping", "models", true],
  // It filters by other values under the same name.
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

test("groups of tags and of feature sets do not add up to the total, all others do", () => {
  expect(["tags", "feature_set", "model", "none"].map(addsUp)).toEqual([false, false, true, true]);
  expect(TOTAL_GROUPINGS).not.toContain("tags");
});

test("only a group of models, features or tags may have several values", () => {
  expect(["model", "feature_set", "tags"].map(memberOf)).toEqual(["model", "feature", "tag"]);
  expect(["model", "method", "none"].map(isSet)).toEqual([true, false, false]);
});

test("a grouping by no dimension, or by several, has no noun of its own", () => {
  expect(["accessor", "none", "accessor,tags"].map(groupingNoun)).toEqual(["API key", "none", "accessor,tags"]);
});

test("what is no dimension is a mistake of the program", () => {
  expect(() => dimension("models" as Dimension)).toThrow('expected a dimension, got "models"');
});
