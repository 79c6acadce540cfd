// How the configuration refers to a secret, which never stands in it: by the environment variable or the file that holds it.

import { z } from "zod";
import { isKeyLike } from "./fault.ts";
import { FilePath, object } from "./fields.ts";

/** A secret that stands elsewhere; `word` is what it is called, "token" or "address". */
export function secret(word: string) {
  const { Env, File } = references(word);
  return z.union([Env, File], { error: `{ "env": "NAME" } or { "file": "PATH" } ${neverHere(word)}` });
}

/** What who wrote something else is told: it may be the secret itself. */
export function neverHere(word: string): string {
  return `(the ${word} itself never stands in this file: put it in an environment variable and use { "env": "NAME" })`;
}

/** The two ways to refer to a secret, apart. */
export function references(word: string) {
  const refuse = (context: z.RefinementCtx) =>
    context.addIssue({
      code: "custom",
      message: `this looks like the ${word} itself: put it in an environment variable and use { "env": "NAME" }`,
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
      .describe(`The environment variable that holds the ${word}.`),
  });
  const File = object({
    file: FilePath.superRefine((path, context) => {
      if (isAddress(path) || (isKeyLike(path) && !/[./\\]/.test(path))) refuse(context);
    }).describe(`A file that holds the ${word} and nothing else. A relative path starts at the folder of this file.`),
  });
  return { Env, File };
}

function isAddress(path: string): boolean {
  return /^\w+:\/\//.test(path);
}
