// A rotation of many projects in the configuration.

import { expect, test } from "vitest";
import { parseConfig, withDiscovered } from "../../src/config/config.ts";

type Names = readonly (readonly [id: string, name: string])[];

const FLEET = {
  ...{ name: "fleet", schedule: "0 4 * * *", projects: ["prod-*", "lab"], comment: "exporter", scopes: ["member"] },
  deliver: [{ file: "keys/{id}.key" }, { command: ["vault", "put", "usage/{id}"] }],
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

const parse = (text: string) => parseConfig(text, { source: "jobs.config.json", baseDir: "/srv/usage" });
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
      { kind: "file", path: "/srv/usage/keys/p2.key" },
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
  [
    "has a file for all projects",
    [{ ...FLEET, deliver: [{ file: "key" }] }],
    'expected "{id}", the id of the project, in it',
  ],
  ["has a command for all projects", [{ ...FLEET, deliver: [{ command: ["put"] }] }], 'expected "{id}", the id'],
  ["has a name like that of a project's", [{ ...FLEET, name: "fleet/p1" }], 'expected a name without "/"'],
  [
    "writes another's file",
    [FLEET, { ...FLEET, name: "second", projects: ["lab"] }],
    "/srv/usage/keys/{id}.key is already at rotations[0].deliver[0].file",
  ],
  [
    "writes the file of a key that creates",
    [{ ...FLEET, deliver: [{ file: "keys/{id}" }], createWith: { file: "keys/{id}" } }],
    "/srv/usage/keys/{id} is the file of the key that a rotation creates keys with",
  ],
  [
    "writes the file of one project's rotation",
    [{ ...FLEET, name: "single", projects: undefined, project: "other", deliver: [{ file: "keys/p2.key" }] }, FLEET],
    "/srv/usage/keys/p2.key is already at rotations[0].deliver[0].file",
  ],
  [
    "writes for one of its projects the file of a key that creates",
    [{ ...FLEET, createWith: { file: "keys/p2.key" } }],
    "/srv/usage/keys/p2.key is the file of the key that a rotation creates keys with",
  ],
  [
    "writes the file of the key that creates for one of many projects",
    [
      { ...FLEET, deliver: [], createWith: { file: "creators/{id}" } },
      { ...FLEET, name: "single", projects: undefined, project: "other", deliver: [{ file: "creators/p1" }] },
    ],
    "/srv/usage/creators/p1 is the file of the key that a rotation creates keys with",
  ],
])("a rotation is refused that %s", (_, rotations, says) => {
  const issues = issuesOf(textOf(rotations)).join("\n");
  expect(issues).toContain(says);
});

test("projects that are discovered later have rotations", () => {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" } }];
  const config = parse(JSON.stringify({ service, projects, rotations: [{ ...FLEET, projects: ["prod-*"] }] }));
  expect(config.rotations).toEqual([]);
  const seen = { list: "env ACCOUNT_KEY", namedAt: new Date(0), vanishedAt: null };
  const known = [
    { ...seen, id: "a1", name: "prod-eu" },
    { ...seen, id: "a3", name: "other" },
    { ...seen, id: "a4", name: "prod-us", vanishedAt: new Date(1) },
  ];
  const { rotations } = withDiscovered(config, known);
  expect(rotations.map(({ name, deliver }) => [name, deliver[0]])).toEqual([
    ["fleet/a1", { kind: "file", path: "/srv/usage/keys/a1.key" }],
  ]);
});
