// Reads a secret from where the configuration says it is. No message repeats a value, nor any part of one.

import { readFile } from "node:fs/promises";
import { AppError } from "../errors.ts";
import { Secret } from "../secret.ts";
import type { SecretReference } from "./config.ts";
import { placeOf } from "./fault.ts";
import { readFault } from "./read-fault.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What kind of secret it is, in words, and what is wrong with a value that can't be one. */
export type SecretKind = {
  readonly file: string;
  readonly what: string;
  readonly faultOf: (value: string) => string | undefined;
};

/** Throws an AppError that says where the secret was looked for and how to mend it. */
export async function readSecret(reference: SecretReference, env: Environment, kind: SecretKind): Promise<Secret> {
  const read = reference.kind === "env" ? fromEnv(reference.name, env, kind) : await fromFile(reference.path, kind);
  const value = read.replace(/\r?\n$/, "");
  const fault = value.trim() === "" ? `is empty: expected ${kind.what}` : kind.faultOf(value);
  if (fault !== undefined) throw new AppError("config", `${nameOf(reference, kind)} ${fault}`);
  return new Secret(value);
}

/** Why nothing was read, with its place in the configuration; empty where it was. */
export async function readProblem(path: readonly (string | number)[], reading: Promise<Secret>): Promise<string[]> {
  try {
    await reading;
    return [];
  } catch (error) {
    if (error instanceof AppError) return [`${placeOf(path)}: ${error.message}`];
    throw error;
  }
}

function fromEnv(name: string, env: Environment, { what }: SecretKind): string {
  const value = env[name];
  if (value === undefined) {
    throw new AppError("config", `environment variable ${name} is not set: set it to ${what}`);
  }
  return value;
}

async function fromFile(path: string, { file, what }: SecretKind): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new AppError("config", `${file} ${readFault(path, cause)}: expected a file with ${what} alone`, { cause });
  }
}

function nameOf(reference: SecretReference, { file }: SecretKind): string {
  return reference.kind === "env" ? `environment variable ${reference.name}` : `${file} ${reference.path}`;
}
