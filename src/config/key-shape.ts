// Where a key is found. The key itself never stands in the configuration, and no message repeats what came in its place.

import { z } from "zod";
import { Name, object } from "./fields.ts";
import { neverHere, references, secret } from "./secret-shape.ts";

const { Env, File } = references("key");

const Rotated = object({
  rotation: Name.describe("The name of the rotation that makes the key."),
  first: secret("key").describe("The key to use until the rotation has made one."),
});

export const Key = z
  .union([Env, File, Rotated], {
    error: `{ "env": "NAME" }, { "file": "PATH" } or { "rotation": "NAME", "first": { "env": "NAME" } } ${neverHere("key")}`,
  })
  .describe(
    "Where the key of this project is found: an environment variable, a file or a rotation. Never the key itself.",
  );
