// Reads what the monitor asks for from where the configuration says it is.

import type { Secret } from "../secret.ts";
import type { AccessReference, MonitorConfig } from "./config.ts";
import { type Environment, readProblem, readSecret } from "./read-secret.ts";
import { headerFault, tooLongFault } from "./secret-fault.ts";

/** What a visitor of the monitor must send. */
export type Access =
  | { readonly kind: "bearer"; readonly token: Secret }
  | { readonly kind: "basic"; readonly username: string; readonly password: Secret };

/** As many tries as the network carries are made at it, so nothing that could be guessed is taken. */
const LENGTH_MIN = 16;

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
  return headerFault(token, "token") ?? tooShortFault(token);
}

function passwordFault(password: string): string | undefined {
  if (/[\p{Cc}\p{Cs}]/u.test(password)) {
    return "holds a line break or another control character: expected the password alone, on one line";
  }
  return tooLongFault(password) ?? tooShortFault(password);
}

function tooShortFault(secret: string): string | undefined {
  if ([...secret].length >= LENGTH_MIN) return undefined;
  return `is too short to be safe: expected at least ${LENGTH_MIN} characters, such as \`openssl rand -hex 32\` makes`;
}
