import { expect, test } from "vitest";
import { findProjects, knownProjects, projectValue } from "../../src/web/projects.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";

const NAMES = [
  "eu-prod",
  "Production",
  "prod",
  "staging",
  "50% off",
  "a_b",
  "acb",
  "C:\\",
  "prod (2)",
  ".*",
  ...HOSTILE_NAMES,
];
const PROJECTS = NAMES.map((name, i) => ({ id: `id-${i}`, name }));

const found = (text: string) => findProjects(PROJECTS, text).map(({ name }) => name);

test("the exact name comes first, then names that begin with the text, then names that contain it", () => {
  expect(found("PROD ")).toEqual(["prod", "Production", "prod (2)", "eu-prod"]);
});

test("a project is found by its identifier", () => {
  expect(found("id-3")).toEqual(expect.arrayContaining(["staging"]));
  expect(found("id-3")[0]).toBe("staging");
});

test("no character of a text has a special meaning", () => {
  expect([found("%"), found("a_"), found(".*"), found("\\"), found("d (2")]).toEqual([
    ...[["50% off"], ["a_b"], [".*"], ["C:\\"], ["prod (2)"]],
  ]);
  for (const name of HOSTILE_NAMES.filter((one) => one.trim() !== "")) expect(found(name)[0]).toBe(name);
  expect(found("__proto__")).toEqual(["__proto__"]);
});

test("an address names a project by its name, unless that is blank or the name of several", () => {
  const line = { source: "usage", series: 1 };
  const known = knownProjects([
    { ...line, projectId: "1", project: "prod" },
    { ...line, projectId: "2", project: "twice" },
    { ...line, projectId: "3", project: "twice", series: 0 },
    { ...line, projectId: "4", project: "" },
    { ...line, projectId: "1", project: "prod", series: 0 },
  ]);
  expect(known.map((one) => [one.id, projectValue(one, known), one.isExported])).toEqual([
    ["1", "prod", true],
    ["2", "2", true],
    ["3", "3", false],
    ["4", "4", true],
  ]);
});
