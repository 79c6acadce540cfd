// Reads what the monitor asks for from where the configuration says it is.

import type { Secret } from "../secret.ts";
import type { AccessReference, MonitorConfig } from "./config.ts";
import { type Environment, readProblem, readSecret } from "./read-secret.ts";

/** What a visitor of the monitor must send. */
export type Access =
  | { readonly kind: "bearer"; readonly token: Secret }
  | { readonly kind: "basic"; readonly username: string; readonly password: Secret };

/** As many tries as the network carries are made at it, so nothing that could be guessed is taken. */
const LENGTH_MIN = 16;
/** It has to fit into a header, encoded. */
const LENGTH_MAX = 4096;

/** Throws an AppError that says where the secret was looked for and how to mend it. */
export async function readAccess(reference: AccessReference, env: Environment): Promise<Access> {
  if (reference.kind === "bearer") return { kind: "bearer", token: await readToken(reference.token, env) };
  const { kind, username } = reference;
  return { kind, username, password: await readPassword(reference.password, env) };
}

/** What is wrong with it, with its place. */
export async function accessProblems({ access }: MonitorConfig, env: Environment): Promise<string[]> {
  if (access === undefined) return [];
  const place = ["monitor", "access"];
  return access.kind === "bearer"
    ? readProblem([...place, "bearer"], readToken(access.token, env))
    : readProblem([...place, "basic", "password"], readPassword(access.password, env));
}

const readToken = (reference: Parameters<typeof readSecret>[0], env: Environment): Promise<Secret> =>
  readSecret(reference, env, { file: "token file", what: "the token", faultOf: tokenFault });

const readPassword = (reference: Parameters<typeof readSecret>[0], env: Environment): Promise<Secret> =>
  readSecret(reference, env, { file: "password file", what: "the password", faultOf: passwordFault });

function tokenFault(token: string): string | undefined {
  if (/^["'`]|["'`]$/.test(token)) return "looks quoted: remove the quotes around the token";
  if (/^bearer\s/i.test(token)) return 'begins with the word "Bearer": remove it, the token stands alone';
  if (!/^[\x21-\x7e]+$/.test(token)) {
    return "holds a space, a line break or a character outside ASCII: expected the token alone, as it is sent";
  }
  return lengthFault(token);
}

function passwordFault(password: string): string | undefined {
  if (/[\p{Cc}\p{Cs}]/u.test(password)) {
    return "holds a line break or another control character: expected the password alone, on one line";
  }
  return lengthFault(password);
}

function lengthFault(secret: string): string | undefined {
  const { length } = [...secret];
  if (length < LENGTH_MIN) {
    return `is too short to be safe: expected at least ${LENGTH_MIN} characters, such as \`openssl rand -hex 32\` makes`;
  }
  return length > LENGTH_MAX ? `holds ${length} characters: expected at most ${LENGTH_MAX}` : undefined;
}
