import { expect, test } from "vitest";
import { unknownFeatures } from "../../src/usage/series.ts";

const KNOWN = ["diarize", "punctuate"];

test.each<[string, Readonly<Record<string, string>>, readonly string[], readonly string[]]>([
  ["a filter without features has no unknown one", {}, KNOWN, []],
  ["a known feature is not unknown", { diarize: "true" }, KNOWN, []],
  ["a feature that the service does not list is unknown", { diarise: "true" }, KNOWN, ["diarise"]],
  ["every unknown feature is named", { diarise: "true", punctuate: "true", nod: "x" }, KNOWN, ["diarise", "nod"]],
  ["names that differ in case are different features", { Diarize: "true" }, KNOWN, ["Diarize"]],
  ["a service that lists no feature at all knows none", { diarize: "true" }, [], ["diarize"]],
])("%s", (_, features, known, unknown) => {
  expect(unknownFeatures({ name: "f", features, dimensions: { endpoint: "listen" } }, known)).toEqual(unknown);
});
