// How the configuration refers to a secret, which never stands in it: by the environment variable or the file that holds it.

import { z } from "zod";
import { isKeyLike } from "./fault.ts";
import { FilePath, object } from "./fields.ts";

/** The two ways to refer to a secret; `secret` is the word for it, "key" or "address". */
export function references(secret: string) {
  const refuse = (context: z.RefinementCtx) =>
    context.addIssue({
      code: "custom",
      message: `this looks like the ${secret} itself: put it in an environment variable and use { "env": "NAME" }`,
    });
  const Env = object({
    env: z
      .string()
      .regex(
        /^[A-Za-z_][A-Za-z0-9_]{0,127}$/,
        'the name of an environment variable (letters, digits and "_", without "$")',
      )
      .superRefine((name, context) => {
        // Capitals are how people write the names of variables, and hardly ever how a key looks.
        if (isKeyLike(name) && name !== name.toUpperCase()) refuse(context);
      })
      .describe(`The environment variable that holds the ${secret}.`),
  });
  const File = object({
    file: FilePath.superRefine((path, context) => {
      if (isAddress(path) || (isKeyLike(path) && !/[./\\]/.test(path))) refuse(context);
    }).describe(`A file that holds the ${secret} and nothing else. A relative path starts at the folder of this file.`),
  });
  return { Env, File };
}

function isAddress(path: string): boolean {
  return /^\w+:\/\//.test(path);
}
