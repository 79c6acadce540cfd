import { expect, test } from "vitest";
import { knownProjects, projectsFound, projectValue } from "../../src/web/projects.ts";
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
const KNOWN = NAMES.map((name, i) => ({ id: `id-${i}`, name }));

/** The names that are found, the best match first. */
function found(text: string): readonly string[] {
  const names: string[] = [];
  projectsFound(text, KNOWN, (name) => {
    names.push(name);
    return "";
  });
  return names;
}

test("a part of a name or of an identifier finds projects, the shortest names first", () => {
  expect(found("PROD ")).toEqual(["prod", "eu-prod", "prod (2)", "Production"]);
  expect(found("id-3")).toContain("staging");
});

test("no character of a text has a special meaning", () => {
  expect([found("%"), found("a_"), found(".*"), found("\\"), found("d (2")]).toEqual([
    ...[["50% off"], ["a_b"], [".*"], ["C:\\"], ["prod (2)"]],
  ]);
  expect(found("__proto__")).toEqual(["__proto__"]);
  expect(projectsFound("no such project", KNOWN, () => "")).toBeUndefined();
});

test("a URL names a project by its name, unless that is blank or the name of several", () => {
  const lines = Object.entries({ 1: "prod", 2: "twice", 3: "twice", 4: "" });
  const known = knownProjects(lines.map(([projectId, project]) => ({ projectId, project })));
  const values = Object.fromEntries(known.map((one) => [one.id, projectValue(one, known)]));
  expect(values).toEqual({ 1: "prod", 2: "2", 3: "3", 4: "4" });
});
