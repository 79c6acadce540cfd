import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { errorsFor, SAMPLE, sampleWith } from "./sample-config.ts";

const parse = (text: string) => parseConfig(text, { source: "jobs.config.json", baseDir: "/srv/usage" });
const keyOf = (key: unknown, place = "projects[1]") => parse(sampleWith(`${place}.key`, key)).projects[1]?.key;

test("a key file and the arguments of a key command have the id and the name of their project put in", () => {
  expect(keyOf({ file: "keys/{id}.key" })).toEqual({ kind: "file", path: "/srv/usage/keys/project_b.key" });
  expect(keyOf({ command: ["vault", "read", "usage/{name}/{id}"] })).toEqual({
    kind: "command",
    command: ["vault", "read", "usage/staging/project_b"],
    timeoutSeconds: 30,
    variables: [],
  });
});

test("placeholders are also for the first key of a rotation, and for the key that creates", () => {
  const first = { rotation: "lab-key", first: { file: "keys/{id}" } };
  expect(parse(sampleWith("projects[2].key", first)).projects[2]?.key).toMatchObject({
    first: { path: "/srv/usage/keys/project_c" },
  });
  const { rotations } = parse(sampleWith("rotations[0].createWith", { command: ["creator", "{name}"] }));
  expect(rotations[0]?.createWith).toMatchObject({ command: ["creator", "lab"] });
});

test.each([
  ["../production", "{name}"],
  ["..", "{name}"],
  [".hidden", "{name}"],
  ["--config=x", "{name}"],
  ["a/b", "{name}"],
  ["a\\b", "{name}"],
  ["$(id)", "{name}"],
  ["a;b", "{name}"],
])("a name that could lead elsewhere is not put in: %j", (name) => {
  const projects = [{ ...SAMPLE.projects[0], name, key: { file: "keys/{name}" } }];
  const config = { ...SAMPLE, projects, exports: [], rotations: [] };
  expect(errorsFor(JSON.stringify(config, null, 2))).toEqual([
    expect.stringMatching(/projects\[0\]\.key .*\{name\} can't stand for .*; use \{id\}, or rename the project$/),
  ]);
  const byId = { ...config, projects: [{ ...projects[0], key: { file: "keys/{id}" } }] };
  expect(errorsFor(JSON.stringify(byId))).toEqual([]);
});

test.each(["Köln 2", "prod_eu-1.2", "日本"])("a harmless name is put in: %s", (name) => {
  const projects = [{ ...SAMPLE.projects[0], name, key: { file: "keys/{name}" } }];
  const { projects: parsed } = parse(JSON.stringify({ ...SAMPLE, projects, exports: [], rotations: [] }));
  expect(parsed[0]?.key).toEqual({ kind: "file", path: `/srv/usage/keys/${name}` });
});

test.each([
  [{ file: "keys/{Id}" }, "{Id} is none of {id} and {name}; did you mean"],
  [{ command: ["vault", "read", "{project}"] }, "{project} is none of {id} and {name}"],
  [{ command: ["vault-{id}"] }, "expected a program without placeholders"],
  [{ command: [] }, "expected"],
  [{ command: "vault read" }, "expected"],
  [{ command: ["vault"], timeoutSeconds: 0 }, "a whole number from 1 to 600"],
  [{ command: ["vault"], variables: ["$TOKEN"] }, "the name of an environment variable"],
  [{ command: ["echo", "a1b2c3d4e5f6a1b2c3d4e5f6"] }, "this looks like the key itself"],
])("a wrong source of a key is refused: %j", (key, says) => {
  const errors = errorsFor(sampleWith("projects[1].key", key)).join("\n");
  expect(errors).toContain("projects[1].key");
  expect(errors).toContain(says);
  expect(errors).not.toContain("a1b2c3d4e5f6");
});
