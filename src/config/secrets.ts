// Reads secrets (API keys, the monitor's token or password, notification addresses) from where the configuration says they are.
// No message repeats a value, nor any part of one.

import { readFile } from "node:fs/promises";
import { AppError } from "../errors.ts";
import { Secret } from "../secret.ts";
import type { Config, SecretReference } from "./config.ts";
import { headerSecretProblem, isLoopback, quotesProblem, tooLongProblem } from "./formats.ts";
import { fileReadProblem, formatPath } from "./messages.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What kind of secret it is, in words, and what is wrong with a value that can't be one. */
type SecretKind = {
  readonly file: string;
  readonly what: string;
  readonly problemOf: (value: string) => string | undefined;
};

/** Throws an AppError that says where the secret was looked for and how to mend it. */
async function readSecret(reference: SecretReference, env: Environment, kind: SecretKind): Promise<Secret> {
  const read = reference.kind === "env" ? fromEnv(reference.name, env, kind) : await fromFile(reference.path, kind);
  const value = read.replace(/\r?\n$/, "");
  const fault = value.trim() === "" ? `is empty: expected ${kind.what}` : kind.problemOf(value);
  if (fault !== undefined) throw new AppError("config", `${secretSourceName(reference, kind)} ${fault}`);
  return new Secret(value);
}

/** Why nothing was read, with its place in the configuration; empty where it was. */
async function readProblem(path: readonly (string | number)[], reading: Promise<Secret>): Promise<string[]> {
  try {
    await reading;
    return [];
  } catch (error) {
    if (error instanceof AppError) return [`${formatPath(path)}: ${error.message}`];
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
    throw new AppError("config", `${file} ${fileReadProblem(path, cause)}: expected a file with ${what} alone`, {
      cause,
    });
  }
}

function secretSourceName(reference: SecretReference, { file }: SecretKind): string {
  return reference.kind === "env" ? `environment variable ${reference.name}` : `${file} ${reference.path}`;
}

// Reads API keys from where the configuration says they are.

/** Throws an AppError that says where the key was looked for and how to mend it. */
export async function readKey(reference: SecretReference, env: Environment): Promise<Secret> {
  return readSecret(reference, env, { file: "key file", what: "the API key", problemOf: keyValueProblem });
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

function keyValueProblem(key: string): string | undefined {
  return headerSecretProblem(key, "key", " (see service.authScheme)");
}

// Reads what the monitor asks for from where the configuration says it is.

/** What a visitor of the monitor must send. */
export type Access =
  | { readonly kind: "bearer"; readonly token: Secret }
  | { readonly kind: "basic"; readonly username: string; readonly password: Secret };

/** As many tries as the network carries are made at it, so nothing that could be guessed is taken. */
const ACCESS_SECRET_LENGTH_MIN = 16;

/** Throws an AppError that says where the secret was looked for and how to mend it. */
export async function readAccess(
  reference: NonNullable<Config["monitor"]["access"]>,
  env: Environment,
): Promise<Access> {
  if (reference.kind === "bearer") return { kind: "bearer", token: await readToken(reference.token, env) };
  const { kind, username } = reference;
  return { kind, username, password: await readPassword(reference.password, env) };
}

/** What is wrong with it, with its place. */
export async function accessProblems({ access }: Config["monitor"], env: Environment): Promise<string[]> {
  if (access === undefined) return [];
  const place = ["monitor", "access"];
  return access.kind === "bearer"
    ? readProblem([...place, "bearer"], readToken(access.token, env))
    : readProblem([...place, "basic", "password"], readPassword(access.password, env));
}

const readToken = (reference: Parameters<typeof readSecret>[0], env: Environment): Promise<Secret> =>
  readSecret(reference, env, { file: "token file", what: "the token", problemOf: tokenValueProblem });

const readPassword = (reference: Parameters<typeof readSecret>[0], env: Environment): Promise<Secret> =>
  readSecret(reference, env, { file: "password file", what: "the password", problemOf: passwordValueProblem });

function tokenValueProblem(token: string): string | undefined {
  return headerSecretProblem(token, "token") ?? tooShortProblem(token);
}

function passwordValueProblem(password: string): string | undefined {
  if (/[\p{Cc}\p{Cs}]/u.test(password)) {
    return "holds a line break or another control character: expected the password alone, on one line";
  }
  return tooLongProblem(password) ?? tooShortProblem(password);
}

function tooShortProblem(secret: string): string | undefined {
  if ([...secret].length >= ACCESS_SECRET_LENGTH_MIN) return undefined;
  return `is too short to be safe: expected at least ${ACCESS_SECRET_LENGTH_MIN} characters, such as \`openssl rand -hex 32\` makes`;
}

// Reads the addresses of notices from where the configuration says they are. They are secrets, as keys are.

/** Throws an AppError that says where the address was looked for and how to mend it. */
export async function readAddress(reference: SecretReference, env: Environment): Promise<Secret> {
  return readSecret(reference, env, { file: "address file", what: "the address", problemOf: addressValueProblem });
}

/** What is wrong with the addresses, each with its place. */
export async function addressProblems({ webhook, deadMan }: Config["notify"], env: Environment): Promise<string[]> {
  const problems = await Promise.all(
    Object.entries({ webhook, deadMan }).map(([name, reference]) =>
      reference ? readProblem(["notify", name], readAddress(reference, env)) : [],
    ),
  );
  return problems.flat();
}

/** What can't be called. */
function addressValueProblem(text: string): string | undefined {
  const fault = quotesProblem(text, "address") ?? tooLongProblem(text);
  if (fault !== undefined) return fault;
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) {
    return "holds something else: expected an https address alone, on one line";
  }
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== "" || password !== "") {
    return "holds a name or password before an @, which is not sent: expected an address that needs none";
  }
  if (protocol === "http:" && !isLoopback(hostname)) {
    return "begins with http://: expected https, since the address is a secret (http is for this machine only)";
  }
  return undefined;
}
