import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { errorsFor, sampleWith } from "./sample-config.ts";

const parse = (text: string) => parseConfig(text, { source: "jobs.config.json", baseDir: "/srv/usage" });
const keyOf = (key: unknown, place = "projects[1]") => parse(sampleWith(`${place}.key`, key)).projects[1]?.key;

test("a key file and the arguments of a key command have the id of their project put in", () => {
  expect(keyOf({ file: "keys/{id}.key" })).toEqual({ kind: "file", path: "/srv/usage/keys/project_b.key" });
  expect(keyOf({ command: ["vault", "read", "usage/{id}"] })).toEqual({
    kind: "command",
    command: ["vault", "read", "usage/project_b"],
    timeoutSeconds: 30,
    variables: [],
  });
});

test("the placeholder is also for the first key of a rotation, and for the key that creates", () => {
  const first = { rotation: "lab-key", first: { file: "keys/{id}" } };
  expect(parse(sampleWith("projects[2].key", first)).projects[2]?.key).toMatchObject({
    first: { path: "/srv/usage/keys/project_c" },
  });
  const { rotations } = parse(sampleWith("rotations[0].createWith", { command: ["creator", "{id}"] }));
  expect(rotations[0]?.createWith).toMatchObject({ command: ["creator", "project_c"] });
});

test.each([
  [{ file: "keys/{Id}" }, "no other placeholder; got {Id}"],
  [{ command: ["vault", "read", "{name}"] }, "no other placeholder; got {name}"],
  [{ command: ["vault-{id}"] }, "expected a program without {id}"],
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
