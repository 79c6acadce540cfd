// A rotation of many projects in the configuration.

import { expect, test } from "vitest";
import { parseConfig, withDiscovered } from "../../src/config/config.ts";
import { errorsFor } from "./sample-config.ts";

type Names = readonly (readonly [id: string, name: string])[];

const FLEET = {
  ...{ name: "fleet", schedule: "0 4 * * *", projects: ["prod-*", "lab"], comment: "exporter", scopes: ["member"] },
  deliver: [{ file: "keys/{project}.key" }, { command: ["vault", "put", "usage/{id}"] }],
};

const PROJECTS: Names = [
  ["p1", "prod-eu"],
  ["p2", "prod-us"],
  ["p3", "lab"],
  ["p4", "other"],
];

function textOf(rotations: readonly object[], projects = PROJECTS, key: object = { env: "KEY" }): string {
  const service = { baseUrl: "https://api.example.com" };
  return JSON.stringify({ service, projects: projects.map(([id, name]) => ({ id, name, key })), rotations }, null, 2);
}

const OPTIONS = {
  source: "jobs.config.json",
  baseDir: "/srv/usage",
  ownPaths: { "/srv/usage/jobs.config.json": "this configuration file" },
};
const parse = (text: string) => parseConfig(text, OPTIONS);
const issuesOf = (text: string) => {
  try {
    parse(text);
    return [];
  } catch (error) {
    return String(error instanceof Error ? error.message : error)
      .split("\n")
      .slice(1);
  }
};

test("each project of the names and patterns has a rotation of its own, with deliveries of its own", () => {
  const { rotations } = parse(textOf([FLEET]));
  expect(rotations.map(({ name, group, project }) => [name, group, project.name])).toEqual([
    ["fleet/p1", "fleet", "prod-eu"],
    ["fleet/p2", "fleet", "prod-us"],
    ["fleet/p3", "fleet", "lab"],
  ]);
  expect(rotations[1]).toMatchObject({
    deliver: [
      { kind: "file", path: "/srv/usage/keys/prod-us.key" },
      { kind: "command", command: ["vault", "put", "usage/p2"] },
    ],
  });
});

test("a key of a rotation of many projects is the one that it makes for the project", () => {
  const key = { rotation: "fleet", first: { file: "first/{id}" } };
  const { projects } = parse(textOf([{ ...FLEET, projects: ["*"] }], PROJECTS, key));
  expect(projects[1]?.key).toEqual({
    ...{ kind: "rotation", rotation: "fleet/p2" },
    first: { kind: "file", path: "/srv/usage/first/p2" },
  });
});

test("the key that creates may be another for each project", () => {
  const { rotations } = parse(textOf([{ ...FLEET, createWith: { file: "creators/{id}" } }]));
  expect(rotations[0]?.createWith).toEqual({ kind: "file", path: "/srv/usage/creators/p1" });
});

test.each<[string, readonly object[], string]>([
  ["names both", [{ ...FLEET, project: "lab" }], 'expected either "project" or "projects"'],
  ["names none", [{ ...FLEET, projects: undefined }], 'expected "project" or "projects"'],
  ["has an unknown project", [{ ...FLEET, projects: ["lap"] }], "rotations[0].projects[0]"],
  ["has a pattern that fits none", [{ ...FLEET, projects: ["x-*"] }], "expected a pattern that fits a project"],
  ["has a file for all projects", [{ ...FLEET, deliver: [{ file: "key" }] }], 'expected "{project}" or "{id}" in it'],
  ["has a command for all projects", [{ ...FLEET, deliver: [{ command: ["put"] }] }], 'expected "{project}" or "{id}"'],
  [
    "misspells a placeholder",
    [{ ...FLEET, deliver: [{ file: "{Project}" }] }],
    "{Project} is none of {project} and {id}",
  ],
  [
    "has the name of another's project",
    [FLEET, { ...FLEET, name: "fleet/p1", projects: ["other"], deliver: [] }],
    'does not begin with "fleet/"',
  ],
  [
    "writes another's file",
    [FLEET, { ...FLEET, name: "second", projects: ["lab"] }],
    "/srv/usage/keys/lab.key is already at rotations[0].deliver[0].file",
  ],
])("a rotation is refused that %s", (_, rotations, says) => {
  const issues = issuesOf(textOf(rotations)).join("\n");
  expect(issues).toContain(says);
});

test.each<[string, Names, string]>([
  [
    "differ in case",
    [
      ["p1", "Prod"],
      ["p2", "prod"],
    ],
    "is already at rotations[0].deliver[0].file",
  ],
  ["lead out of the folder", [["p1", "../jobs.config"]], "can't stand for"],
])("two projects never write one file, nor one a file with another use: names that %s", (_, projects, says) => {
  const deliver = [{ file: "{project}.json" }];
  const issues = issuesOf(textOf([{ ...FLEET, projects: ["*"], deliver }], projects)).join("\n");
  expect(issues).toContain(says);
});

test("no key is written over the configuration or the file of a key that creates", () => {
  const over = (projects: Names, rest: object) =>
    issuesOf(textOf([{ ...FLEET, projects: ["*"], ...rest }], projects)).join("\n");
  expect(over([["p1", "jobs.config"]], { deliver: [{ file: "{project}.json" }] })).toContain("this configuration file");
  expect(over([["p1", "a"]], { deliver: [{ file: "keys/{id}" }], createWith: { file: "keys/{id}" } })).toContain(
    "the file of the key that a rotation creates keys with",
  );
});

test("two rotations may share a pattern of files for different projects", () => {
  const others = { ...FLEET, name: "others", projects: ["other"] };
  expect(errorsFor(textOf([FLEET, others]))).toEqual([]);
});

test("projects that are discovered later have rotations, and one whose name can't be a file's is left out alone", () => {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" } }];
  const fleet = { ...FLEET, projects: ["prod-*"], deliver: [{ file: "keys/{project}-{id}.key" }] };
  const config = parse(JSON.stringify({ service, projects, rotations: [fleet] }));
  expect(config.rotations).toEqual([]);
  const never = { missingSince: undefined, vanishedAt: undefined };
  const seen = { list: "env ACCOUNT_KEY", firstSeenAt: new Date(0), namedAt: new Date(0), ...never };
  const known = [
    { ...seen, id: "a1", name: "prod-eu" },
    { ...seen, id: "a2", name: "prod-../../etc" },
    { ...seen, id: "a3", name: "other" },
    { ...seen, id: "a4", name: "prod-us", vanishedAt: new Date(1) },
  ];
  const { rotations, leftOut } = withDiscovered(config, known);
  expect(rotations.map(({ name, deliver }) => [name, deliver[0]])).toEqual([
    ["fleet/a1", { kind: "file", path: "/srv/usage/keys/prod-eu-a1.key" }],
  ]);
  expect(leftOut).toMatchObject([
    { group: "fleet", project: { id: "a2" }, message: expect.stringContaining("can't stand for") },
  ]);
});

test("a delivery of discovered projects needs {id}: a project that takes over the name of another would overwrite its key", () => {
  const issuesWith = (deliver: readonly object[], names = ["prod-*"]) => {
    const service = { baseUrl: "https://api.example.com" };
    const key = { env: "KEY" };
    const projects = [
      { id: "p1", name: "lab", key },
      { discover: true, key },
    ];
    return issuesOf(JSON.stringify({ service, projects, rotations: [{ ...FLEET, projects: names, deliver }] })).join(
      "\n",
    );
  };
  const byName = [{ file: "keys/{project}" }, { command: ["vault", "put", "usage/{project}"] }];
  const issues = issuesWith(byName);
  expect(issues).toContain("rotations[0].deliver[0].file");
  expect(issues).toContain("rotations[0].deliver[1].command[2]");
  expect(issues).toContain('expected "{id}" beside "{project}" in it, or in its place: the name of a discovered');
  // An id in another argument does not make the place one of its own.
  const beside = issuesWith([{ file: "keys/{id}" }, { command: ["vault", "put", "usage/{project}", "note={id}"] }]);
  expect(beside).toContain("rotations[0].deliver[1].command[2]");
  expect(issuesWith([{ file: "{project}/{id}" }, { command: ["put", "usage/{id}", "note={project} {id}"] }])).toBe("");
  // No discovered project is meant by a name without *.
  expect(issuesWith(byName, ["lab"])).toBe("");
});
