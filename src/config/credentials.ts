// Reads API keys from where the configuration says they are.

import type { Secret } from "../secret.ts";
import type { Config, SecretReference } from "./config.ts";
import { type Environment, readProblem, readSecret } from "./read-secret.ts";
import { headerFault } from "./secret-fault.ts";

/** Throws an AppError that says where the key was looked for and how to mend it. */
export async function readKey(reference: SecretReference, env: Environment): Promise<Secret> {
  return readSecret(reference, env, { file: "key file", what: "the API key", faultOf: keyFault });
}

/**
 * Checks the keys of all projects and the `createWith` keys of all rotations before the first call, and returns every problem with
 * its place in the configuration.
 * `rotated` names the rotations that have a key already: the first key of such a project is not needed any more.
 */
export async function keyProblems(
  config: Pick<Config, "projects" | "rotations">,
  env: Environment,
  rotated: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  const keys = [
    ...config.projects.map(({ key }, index) => ({ key, place: ["projects", index, "key"] })),
    ...config.rotations.flatMap(({ createWith: key }, index) =>
      key ? [{ key, place: ["rotations", index, "createWith"] }] : [],
    ),
  ];
  const needed = keys.flatMap(({ key, place }) => {
    if (key.kind !== "rotation") return [{ place, reference: key }];
    return rotated.has(key.rotation) ? [] : [{ place: [...place, "first"], reference: key.first }];
  });
  const problems = await Promise.all(needed.map(({ place, reference }) => readProblem(place, readKey(reference, env))));
  return problems.flat();
}

function keyFault(key: string): string | undefined {
  return headerFault(key, "key", " (see service.authScheme)");
}
