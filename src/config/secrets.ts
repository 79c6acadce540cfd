// Reads secrets from where the configuration says they are. No message contains a value, nor any part of one.

import { isProgram } from "../command.ts";
import { AppError, systemCode } from "../errors.ts";
import { readRegularFile } from "../files.ts";
import type { Environment } from "../proxy.ts";
import { Secret } from "../secret.ts";
import type { Config } from "./config.ts";
import { isLoopback, type SecretReference } from "./fields.ts";
import type { Path } from "./json.ts";
import { fileReadProblem, formatPath } from "./messages.ts";
import { hasId, type KeyReference, type StaticKeyReference } from "./projects.ts";
import { jobNameOf, keyOfProject } from "./rotations.ts";

export type SecretKind = "key" | "token" | "password" | "address";

type NeededSecret = { readonly path: Path; readonly kind: SecretKind; readonly reference: StaticKeyReference };

/** A longer value is probably the content of a wrong file. */
const SECRET_LENGTH_MAX = 4096;
/** The monitor does not limit how often somebody guesses, so its secrets must be long. */
const ACCESS_SECRET_LENGTH_MIN = 16;

const PASSWORD_FORMAT = /^[^\p{Cc}\p{Cs}]+$/u;
/** Visible ASCII, because the value is sent in a header as it is. A quote at an end is refused: it was meant for a shell or for JSON. */
const HEADER_VALUE_FORMAT = /^(?!["'`])[\x21-\x7e]+(?<!["'`])$/;

/** Throws `config`, or `unavailable` if a later try may succeed. */
export async function readSecret(kind: SecretKind, reference: SecretReference, env: Environment): Promise<Secret> {
  if ("file" in reference) {
    return secretOf(kind, await readSecretFile(kind, reference.file), `${kind} file ${reference.file}`);
  }
  const source = `environment variable ${reference.env}`;
  const value = env[reference.env];
  if (value === undefined) throw new AppError("config", `${source} is not set: set it to ${nameOf(kind)}`);
  return secretOf(kind, value, source);
}

/** Throws `config` if the text can't be a secret of the kind. One line end after it is dropped. `source` begins the message. */
export function secretOf(kind: SecretKind, text: string, source: string): Secret {
  const value = text.replace(/\r?\n$/, "");
  const problem = valueProblem(kind, value);
  if (problem !== undefined) throw new AppError("config", `${source} ${problem}`);
  return new Secret(value);
}

function valueProblem(kind: SecretKind, value: string): string | undefined {
  const { length } = [...value];
  if (value.trim() === "") return `is empty: expected ${nameOf(kind)}`;
  if (length > SECRET_LENGTH_MAX) return `holds ${length} characters: expected at most ${SECRET_LENGTH_MAX}`;
  if (kind === "address") return secretAddressProblem(value);
  if (!(kind === "password" ? PASSWORD_FORMAT : HEADER_VALUE_FORMAT).test(value)) {
    const without = kind === "password" ? "" : `, without spaces, quotes or a word such as "Bearer" before it`;
    return `does not hold ${nameOf(kind)} alone: expected it on one line${without}`;
  }
  if (kind === "key" || length >= ACCESS_SECRET_LENGTH_MIN) return undefined;
  return `is too short to be safe: expected at least ${ACCESS_SECRET_LENGTH_MIN} characters, such as \`openssl rand -hex 32\` makes`;
}

function secretAddressProblem(text: string): string | undefined {
  if (!/^https?:\/\/[^\s\\"]+$/i.test(text) || !URL.canParse(text)) {
    return "does not hold an address: expected an https address alone, on one line";
  }
  const { protocol, hostname } = new URL(text);
  if (protocol === "https:" || isLoopback(hostname)) return undefined;
  return "begins with http://: expected https, since the address is a secret (http is for this machine only)";
}

const nameOf = (kind: SecretKind) => (kind === "key" ? "the API key" : `the ${kind}`);

/** The path or the rights are wrong. After any other error, such as one of a network drive, the next reading of a key may succeed. */
const WRONG_PATH_CODE = /^(ENOENT|ENOTDIR|EISDIR|ENAMETOOLONG|ELOOP|EACCES|EPERM)$/;

async function readSecretFile(kind: SecretKind, path: string): Promise<string> {
  try {
    return (await readRegularFile(path)).toString("utf8");
  } catch (cause) {
    const problem = `${kind} file ${fileReadProblem(path, cause)}`;
    const code = systemCode(cause);
    const isTemporary = code === "ETIMEDOUT" || (kind === "key" && !WRONG_PATH_CODE.test(code));
    if (isTemporary) throw new AppError("unavailable", problem);
    throw new AppError("config", `${problem}: expected a file with ${nameOf(kind)} alone`, { cause });
  }
}

/** Throws `config` and names every API key that can't be read. Ignores each `first` key, as its rotation may have made a newer one. */
export async function requireUnrotatedKeys({ env }: { readonly env: Environment }, config: Config): Promise<void> {
  await requireReadable(neededKeys(config, new Set(config.rotations.map(({ name }) => name))), env);
}

/** Throws `config` and names each secret that can't be read. Secrets with the same problem share a line. */
export async function requireReadable(needed: readonly NeededSecret[], env: Environment): Promise<void> {
  const problems = (await Promise.all(needed.map((secret) => problemsIn(secret, env)))).flat();
  if (problems.length === 0) return;
  const lines = [...Map.groupBy(problems, ({ message }) => message)].map(([message, [first, ...others]]) => {
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return `${formatPath(first?.path ?? [])}${more}: ${message}`;
  });
  if (problems.some(({ kind }) => kind === "key")) {
    lines.push("The first key of a project can't be created through the API: create it in the service's web console.");
  }
  throw new AppError("config", lines.join("\n"));
}

/** Runs no command. A file for which `readSecret` throws `unavailable` is not reported: only calls that need its secret fail. */
async function problemsIn({ path, kind, reference }: NeededSecret, env: Environment) {
  if ("command" in reference) {
    const [program = ""] = reference.command;
    const message = `the program ${JSON.stringify(program)} does not exist, or may not be run`;
    return (await isProgram(program)) ? [] : [{ path: [...path, "command", 0], kind, message }];
  }
  try {
    await readSecret(kind, reference, env);
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.code === "config" ? [{ path, kind, message: error.message }] : [];
  }
}

/** The API keys that the configuration must supply, with paths in its file. `rotated`: rotations that have made a key and need no `first` one. */
export function neededKeys({ file, rotations }: Config, rotated: ReadonlySet<string>): NeededSecret[] {
  const needed: NeededSecret[] = [];
  const add = (key: KeyReference, ...path: Path) => {
    if (!("rotation" in key)) needed.push({ path, kind: "key", reference: key });
    else if (!rotated.has(key.rotation)) needed.push({ path: [...path, "first"], kind: "key", reference: key.first });
  };
  for (const [i, entry] of file.projects.entries()) {
    add("id" in entry ? keyOfProject(entry.key, file.rotations, entry) : entry.key, "projects", i, "key");
    const projectKey = "discover" in entry ? entry.projectKey : undefined;
    // With {id} in its path, the files are unknown until projects are discovered. With {id} in a command, the program is known.
    if (projectKey && !("file" in projectKey && hasId(projectKey))) add(projectKey, "projects", i, "projectKey");
  }
  for (const { createWith, ...rotation } of rotations) {
    const index = file.rotations.findIndex((one) => one.name === jobNameOf(rotation));
    if (createWith) add(createWith, "rotations", index, "createWith");
  }
  return needed;
}
