// Where a key is found. The key itself never stands in the configuration, and no message repeats what came in its place.

import { z } from "zod";
import { Name, object } from "./fields.ts";
import { references } from "./secret-shape.ts";

const { Env, File } = references("key");

const First = z.union([Env, File], {
  error: '{ "env": "NAME" } or { "file": "PATH" } (a key itself never stands in this file: use { "env": "NAME" })',
});

const Rotated = object({
  rotation: Name.describe("The name of the rotation that makes the key."),
  first: First.describe("The key to use until the rotation has made one."),
});

export const Key = z
  .union([Env, File, Rotated], {
    error:
      '{ "env": "NAME" }, { "file": "PATH" } or { "rotation": "NAME", "first": { "env": "NAME" } } ' +
      '(a key itself never stands in this file: put it in an environment variable and use { "env": "NAME" })',
  })
  .describe(
    "Where the key of this project is found: an environment variable, a file or a rotation. Never the key itself.",
  );
