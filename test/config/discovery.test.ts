// What discovered projects add to a configuration, and which entries for discovery are refused.

import { expect, test } from "vitest";
import { withDiscovered } from "../../src/config/config.ts";
import { keyName } from "../../src/config/projects.ts";
import { neededKeys } from "../../src/config/secrets.ts";
import type { KnownProject } from "../../src/usage/series.ts";
import { parse } from "./sample-config.ts";

const DISCOVERY = { discover: true, key: { env: "ACCOUNT_KEY" } };
const NIGHTLY = { name: "nightly", schedule: "15 2 * * *", groupings: ["none"] };
const ONE = { id: "p1", name: "one", key: { env: "KEY" } };

/** A configuration with these projects and one export of some of them. */
function configOf(projects: readonly object[], names: readonly string[], rest: object = {}) {
  const service = { baseUrl: "https://api.example.com" };
  return parse({ service, projects, exports: [{ ...NIGHTLY, projects: names }], ...rest });
}

function known(id: string, name: string, more: Partial<KnownProject> = {}): KnownProject {
  const namedAt = new Date("2026-03-10T02:15:00Z");
  return { keyName: "env ACCOUNT_KEY", id, name, namedAt, vanishedAt: null, ...more };
}

const namesOf = (projects: readonly { readonly name: string }[] = []) => projects.map(({ name }) => name);

test("discovered projects are read like those in the file, by the exports whose patterns they fit", () => {
  const config = configOf([ONE, DISCOVERY], ["one", "prod-*"]);
  const { projects, exports } = withDiscovered(config, [known("a", "prod-a"), known("b", "lab")]);
  expect(projects).toEqual([
    { id: "p1", name: "one", key: { env: "KEY" } },
    { id: "a", name: "prod-a", key: { env: "ACCOUNT_KEY" }, isDiscovered: true },
    { id: "b", name: "lab", key: { env: "ACCOUNT_KEY" }, isDiscovered: true },
  ]);
  expect(exports[0]?.projects).toEqual([
    { id: "p1", name: "one" },
    { id: "a", name: "prod-a" },
  ]);
});

test("include and exclude choose by the name or the id at the service", () => {
  const entry = { ...DISCOVERY, include: ["prod-*", "id-7"], exclude: ["*-old"] };
  const listed = [known("a", "prod-a"), known("b", "prod-b-old"), known("id-7", "lab"), known("id-8", "lab two")];
  const { projects } = withDiscovered(configOf([entry], ["*"]), listed);
  expect(namesOf(projects)).toEqual(["prod-a", "lab"]);
});

test("a second list of projects replaces the first one", () => {
  const config = configOf([DISCOVERY], ["*"]);
  const before = withDiscovered(config, [known("a", "a"), known("b", "b")]);
  const after = withDiscovered(before, [known("a", "renamed"), known("c", "c")]);
  expect(after).toEqual(withDiscovered(config, [known("a", "renamed"), known("c", "c")]));
  expect(namesOf(after.exports[0]?.projects)).toEqual(["renamed", "c"]);
});

test("the first of several projects with the same name keeps it, in whatever order they are listed", () => {
  const config = configOf([{ ...ONE, name: "lab" }, DISCOVERY], ["*"]);
  const later = { namedAt: new Date("2026-03-11T02:15:00Z") };
  const vanished = { vanishedAt: new Date("2026-03-12T02:15:00Z") };
  const listed = [known("a1", "shop", later), known("z9", "shop", vanished), known("b2", "lab"), known("c3", "shop")];
  // z9 and c3 got their name at the same time, so the lower id is the first.
  const { projects } = withDiscovered(config, listed);

  expect(projects.map(({ id, name }) => [id, name])).toEqual([
    ["p1", "lab"],
    ["b2", "lab (b2)"],
    ["c3", "shop"],
    ["a1", "shop (a1)"],
  ]);
  expect(withDiscovered(config, [...listed].reverse())).toEqual(withDiscovered(config, listed));
});

test("a project that is renamed to the name of another one does not take it over, even if that one has vanished", () => {
  const config = configOf([DISCOVERY], ["*"]);
  const renamedAt = new Date("2026-03-12T02:15:00Z");
  const before = new Date("2026-03-11T02:15:00Z");

  const { projects } = withDiscovered(config, [
    known("a", "shop", { namedAt: renamedAt }),
    known("b", "shop", { namedAt: before }),
    known("c", "lab", { namedAt: renamedAt }),
    known("d", "lab", { namedAt: before, vanishedAt: renamedAt }),
  ]);

  expect(projects.map(({ id, name }) => [id, name])).toEqual([
    ["b", "shop"],
    ["a", "shop (a)"],
    ["c", "lab (c)"],
  ]);
});

test("a pattern fits every project whose name matches, even one that is called like the pattern", () => {
  const config = configOf([{ ...ONE, name: "own-*" }, DISCOVERY], ["own-*"]);
  const { exports } = withDiscovered(config, [known("a", "*"), known("b", "lab"), known("c", "own-c")]);
  expect(namesOf(exports[0]?.projects)).toEqual(["own-*", "own-c"]);
});

test("a rotation whose project is called like a pattern makes the key of that project alone", () => {
  const rotation = { name: "r", schedule: "0 4 * * *", project: "own-*", comment: "c", scopes: ["member"] };
  const config = configOf([{ ...ONE, name: "own-*" }, DISCOVERY], ["*"], { rotations: [rotation] });
  const { rotations } = withDiscovered(config, [known("c", "own-c")]);
  expect(rotations.map(({ name, project }) => [name, project.id])).toEqual([["r", "p1"]]);
});

test("a project that is in the file, too, is read with the key in the file", () => {
  const { projects } = withDiscovered(configOf([DISCOVERY, ONE], ["*"]), [known("p1", "listed"), known("p2", "two")]);
  expect(projects).toMatchObject([
    { name: "one", key: { env: "KEY" } },
    { name: "two", key: { env: "ACCOUNT_KEY" } },
  ]);
});

test("a project that vanished from one list is read with the key of another that has it", () => {
  const entries = [DISCOVERY, { discover: true, key: { file: "other.key" } }];
  const listed = [
    known("a", "a", { vanishedAt: new Date("2026-03-12T02:15:00Z") }),
    known("a", "a", { keyName: "file /srv/usage/other.key" }),
  ];
  const { projects } = withDiscovered(configOf(entries, ["*"]), listed);
  expect(projects).toMatchObject([{ id: "a", key: { file: "/srv/usage/other.key" } }]);
});

test("a budget without a project goes on counting a project that has vanished", () => {
  const budgets = [{ name: "all", metric: "requests", amount: 100 }];
  const config = configOf([DISCOVERY], ["prod-*"], { budgets });
  const vanished = known("b", "prod-b", { vanishedAt: new Date("2026-03-12T02:15:00Z") });
  const expanded = withDiscovered(config, [known("a", "prod-a"), vanished, known("c", "lab")]);
  expect(namesOf(expanded.budgets[0]?.projects)).toEqual(["prod-a", "prod-b"]);
});

test("the key of an entry is needed once for all its projects", () => {
  const config = withDiscovered(configOf([DISCOVERY, ONE], ["*"]), [known("a", "a"), known("b", "b")]);
  expect(neededKeys(config, new Set())).toEqual([
    { path: ["projects", 0, "key"], kind: "key", reference: { env: "ACCOUNT_KEY" } },
    { path: ["projects", 1, "key"], kind: "key", reference: { env: "KEY" } },
  ]);
});

test.each([
  [{ file: "keys/{id}" }, undefined],
  [{ command: ["vault", "{id}"] }, ["projects", 0, "projectKey"]],
])("a projectKey is needed at the start unless it is a file with {id} in its path: %j", (projectKey, path) => {
  const needed = neededKeys(configOf([{ ...DISCOVERY, projectKey }], ["*"]), new Set());
  expect(needed[1]?.path).toEqual(path);
});

const KEY_FORMS = '{ "env": "NAME" }, { "file": "PATH" } or { "command": ["PROGRAM", "ARGUMENT"] }';
const BY_ROTATION = { ...DISCOVERY, key: { rotation: "r", first: { env: "A" } } };
const PLACEHOLDER_REFUSED = "projects[0].key (line 1): expected no placeholder: this key lists the projects";
const LITERAL_REFUSED = /projects\[0\]\.projectKey \(line 1\): expected .*; got a string, not shown here/;
const NAME_REFUSED = /projects\[0\]\.projectKey\.file \(line 1\): .*no other placeholder; got \{name\}/;
const ROTATION_REFUSED = `projects[0].projectKey (line 1): expected ${KEY_FORMS}`;
const NOT_DISCOVER = { ...DISCOVERY, discover: false };

test.each([
  ["no key", [{ discover: true }], "*", `projects[0].key (line 1): missing; expected ${KEY_FORMS}`],
  ["a rotation as the key of the list", [BY_ROTATION], "*", "projects[0].key"],
  ["{id} in the key of the list", [{ ...DISCOVERY, key: { file: "keys/{id}" } }], "*", PLACEHOLDER_REFUSED],
  ["a literal projectKey", [{ ...DISCOVERY, projectKey: "open-sesame" }], "*", LITERAL_REFUSED],
  ["{name} in projectKey", [{ ...DISCOVERY, projectKey: { file: "keys/{name}" } }], "*", NAME_REFUSED],
  ["a rotation as projectKey", [{ ...DISCOVERY, projectKey: BY_ROTATION.key }], "*", ROTATION_REFUSED],
  ["discover: false", [NOT_DISCOVER], "*", 'projects[0].discover (line 1): expected "true"; got false'],
  [
    "the plain name of a discovered project",
    [ONE, DISCOVERY],
    "prod",
    'got "prod"; discovered projects are named by a pattern such as "prod-*"',
  ],
  ["a pattern that fits nothing", [ONE], "prod-*", 'expected a pattern that matches a project ("one"); got "prod-*"'],
])("%s is refused", (_, projects, name, message) => {
  expect(() => configOf(projects, [name])).toThrow(message);
});

test("a pattern may match projects of the file", () => {
  expect(namesOf(configOf([ONE, { ...ONE, id: "p2", name: "two" }], ["t*"]).exports[0]?.projects)).toEqual(["two"]);
});

test("each discovered project can have a key file of its own", () => {
  const config = configOf(
    [{ ...DISCOVERY, key: { command: ["vault", "account"] }, projectKey: { file: "keys/{id}" } }],
    ["*"],
  );
  const listKeyName = config.discovery.map(({ key }) => keyName(key))[0] ?? "";
  expect(listKeyName).toMatch(/^command vault [0-9a-f]{16}$/);

  const { projects } = withDiscovered(config, [
    known("a", "one", { keyName: listKeyName }),
    known("b", "two", { keyName: listKeyName, namedAt: new Date("2026-03-11") }),
  ]);

  expect(projects.map(({ key }) => key)).toEqual([{ file: "/srv/usage/keys/a" }, { file: "/srv/usage/keys/b" }]);
  // Only the key of the list is needed at the start: the key files are not known before the projects.
  expect(neededKeys(config, new Set()).map(({ path }) => path)).toEqual([["projects", 0, "key"]]);
});

test("projects that are discovered later have rotations, each with deliveries of its own", () => {
  const rotation = {
    ...{ name: "fleet", schedule: "0 4 * * *", projects: ["prod-*"], comment: "exporter", scopes: ["member"] },
    deliver: [{ file: "keys/{id}.key" }],
  };
  const config = configOf([DISCOVERY], ["*"], { rotations: [rotation] });
  expect(config.rotations).toEqual([]);
  const vanished = known("a4", "prod-us", { vanishedAt: new Date(1) });
  const { rotations } = withDiscovered(config, [known("a1", "prod-eu"), known("a3", "other"), vanished]);
  expect(rotations.map(({ name, deliver }) => [name, deliver[0]])).toEqual([
    ["fleet/a1", { file: "/srv/usage/keys/a1.key" }],
  ]);
});
