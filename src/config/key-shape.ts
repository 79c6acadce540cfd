// Where a key is found. The key itself never stands in the configuration, and no message repeats what came in its place.

import { z } from "zod";
import { isKeyLike } from "./fault.ts";
import { FilePath, Name, object } from "./fields.ts";

const Env = object({
  env: z
    .string()
    .regex(
      /^[A-Za-z_][A-Za-z0-9_]{0,127}$/,
      'the name of an environment variable (letters, digits and "_", without "$")',
    )
    .superRefine((name, context) => {
      // Capitals are how people write the names of variables, and hardly ever how a key looks.
      if (isKeyLike(name) && name !== name.toUpperCase()) refuseKey(context);
    })
    .describe("The environment variable that holds the key."),
});

const File = object({
  file: FilePath.superRefine((path, context) => {
    if (isKeyLike(path) && !/[./\\]/.test(path)) refuseKey(context);
  }).describe("A file that holds the key and nothing else. A relative path starts at the folder of this file."),
});

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

function refuseKey(context: z.RefinementCtx): void {
  context.addIssue({
    code: "custom",
    message: 'this looks like a key itself: put it in an environment variable and use { "env": "NAME" }',
  });
}
