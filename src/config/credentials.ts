// Reads API keys from where the configuration says they are.

import type { Secret } from "../secret.ts";
import type { Config, SecretReference } from "./config.ts";
import { type Environment, readProblem, readSecret } from "./read-secret.ts";

/** Far longer than any key: more is another file. */
const KEY_LENGTH_MAX = 4096;

/** Throws an AppError that says where the key was looked for and how to mend it. */
export async function readKey(reference: SecretReference, env: Environment): Promise<Secret> {
  return readSecret(reference, env, { file: "key file", what: "the API key", faultOf: keyFault });
}

/**
 * What is wrong with the keys of the projects, each with its place, so that all of it is known before the first call.
 * `rotated` names the rotations that have a key already: the first key of such a project is not needed any more.
 */
export async function keyProblems(
  config: Pick<Config, "projects">,
  env: Environment,
  rotated: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  const needed = config.projects.flatMap(({ key }, index) => {
    const place = ["projects", index, "key"];
    if (key.kind !== "rotation") return [{ place, reference: key }];
    return rotated.has(key.rotation) ? [] : [{ place: [...place, "first"], reference: key.first }];
  });
  const problems = await Promise.all(needed.map(({ place, reference }) => readProblem(place, readKey(reference, env))));
  return problems.flat();
}

/** What a key can't be, since it stands in a header as it is. */
function keyFault(key: string): string | undefined {
  if (/^["'`]|["'`]$/.test(key)) return "looks quoted: remove the quotes around the key";
  const scheme = /^\s*(token|bearer|basic)\s/i.exec(key)?.[1];
  if (scheme !== undefined)
    return `begins with the word "${scheme}": remove it, the key stands alone (see service.authScheme)`;
  if (/\s/.test(key)) return "holds a space or line break: expected the key alone, on one line";
  if (!/^[\x21-\x7e]+$/.test(key))
    return "holds a control character or one outside ASCII: expected the key alone, as it was shown";
  if (key.length > KEY_LENGTH_MAX) return `holds ${key.length} characters: expected a key of at most ${KEY_LENGTH_MAX}`;
  return undefined;
}
