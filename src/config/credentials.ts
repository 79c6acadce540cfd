// Reads API keys from where the configuration says they are. No message repeats a value, nor any part of one.

import { readFile } from "node:fs/promises";
import { AppError } from "../errors.ts";
import { Secret } from "../secret.ts";
import type { Config, StaticKeyReference } from "./config.ts";
import { placeOf } from "./fault.ts";
import { readFault } from "./read-fault.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Far longer than any key: more is another file. */
const KEY_LENGTH_MAX = 4096;

/** Throws an AppError that says where the key was looked for and how to mend it. */
export async function readKey(reference: StaticKeyReference, env: Environment): Promise<Secret> {
  const value = reference.kind === "env" ? fromEnv(reference.name, env) : await fromFile(reference.path);
  const key = value.replace(/\r?\n$/, "");
  const fault = keyFault(key);
  if (fault !== undefined) throw new AppError("config", `${nameOf(reference)} ${fault}`);
  return new Secret(key);
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
    if (key.kind !== "rotation") return [{ place: placeOf(place), reference: key }];
    return rotated.has(key.rotation) ? [] : [{ place: placeOf([...place, "first"]), reference: key.first }];
  });
  const problems = await Promise.all(needed.map(({ place, reference }) => keyProblem(place, reference, env)));
  return problems.flat();
}

async function keyProblem(place: string, reference: StaticKeyReference, env: Environment): Promise<string[]> {
  try {
    await readKey(reference, env);
    return [];
  } catch (error) {
    if (error instanceof AppError) return [`${place}: ${error.message}`];
    throw error;
  }
}

function fromEnv(name: string, env: Environment): string {
  const value = env[name];
  if (value === undefined) {
    throw new AppError("config", `environment variable ${name} is not set: set it to the API key`);
  }
  return value;
}

async function fromFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new AppError("config", `key file ${readFault(file, cause)}: expected a file with the API key alone`, {
      cause,
    });
  }
}

function nameOf(reference: StaticKeyReference): string {
  return reference.kind === "env" ? `environment variable ${reference.name}` : `key file ${reference.path}`;
}

/** What a key can't be, since it stands in a header as it is. */
function keyFault(key: string): string | undefined {
  if (key.trim() === "") return "is empty: expected the API key";
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
