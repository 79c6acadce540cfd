// Reads secrets from where the configuration says they are. No message contains a value, nor any part of one.

import { AppError, systemCode } from "../errors.ts";
import { readRegularFile } from "../files.ts";
import { Secret } from "../secret.ts";
import type { Config, SecretReference } from "./config.ts";
import { isLoopback } from "./fields.ts";
import type { ConfigIssue, Path } from "./json.ts";
import { fileReadProblem, formatPath, SCHEME_AND_KEY } from "./messages.ts";
import { isPatternKey, type StaticKeyReference } from "./projects.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The API key of a project; the monitor's token and password; the address of a notification. */
type SecretKind = "key" | "token" | "password" | "address";

/** A secret that the configuration refers to, and the path of the reference. */
type NeededSecret = { readonly path: Path; readonly kind: SecretKind; readonly reference: StaticKeyReference };

/** What is wrong with a value that can't be a secret of the kind. */
const VALUE_PROBLEMS: Readonly<Record<SecretKind, (value: string) => string | undefined>> = {
  key: (key) => headerValueProblem(key, "key", " (see service.authScheme)"),
  token: (token) => headerValueProblem(token, "token") ?? tooShortProblem(token),
  password: passwordProblem,
  address: addressProblem,
};

/**
 * Throws an AppError that says where the secret was looked for and how to fix it: `unavailable` if its file system does not answer, and of
 * an API key if its file is there and can't be read.
 */
export async function readSecret(kind: SecretKind, reference: SecretReference, env: Environment): Promise<Secret> {
  const isVariable = reference.kind === "env";
  const source = isVariable ? `environment variable ${reference.name}` : `${kind} file ${reference.path}`;
  const read = isVariable ? env[reference.name] : await readSecretFile(kind, reference.path);
  if (read === undefined) throw new AppError("config", `${source} is not set: set it to ${nameOf(kind)}`);
  return secretOf(kind, read.replace(/\r?\n$/, ""), source);
}

/** Throws an AppError if the value can't be a secret of the kind. `source` says where it is from. */
export function secretOf(kind: SecretKind, value: string, source: string): Secret {
  const problem = valueProblem(kind, value);
  if (problem !== undefined) throw new AppError("config", `${source} ${problem}`);
  return new Secret(value);
}

function valueProblem(kind: SecretKind, value: string): string | undefined {
  const { length } = [...value];
  if (value.trim() === "") return `is empty: expected ${nameOf(kind)}`;
  if (length > SECRET_LENGTH_MAX) return `holds ${length} characters: expected at most ${SECRET_LENGTH_MAX}`;
  const isQuoted = kind !== "password" && /^["'`]|["'`]$/.test(value);
  return isQuoted ? `looks quoted: remove the quotes around the ${kind}` : VALUE_PROBLEMS[kind](value);
}

const nameOf = (kind: SecretKind) => (kind === "key" ? "the API key" : `the ${kind}`);

async function readSecretFile(kind: SecretKind, path: string): Promise<string> {
  try {
    return (await readRegularFile(path)).toString("utf8");
  } catch (cause) {
    const code = systemCode(cause);
    const problem = `${kind} file ${fileReadProblem(path, cause)}`;
    if (code === "ETIMEDOUT" || (kind === "key" && !isWrongPath(code))) throw new AppError("unavailable", problem);
    throw new AppError("config", `${problem}: expected a file with ${nameOf(kind)} alone`, { cause });
  }
}

/** Whether a person gave another path than they meant, or no right to read it. Otherwise what the path leads to is broken, such as a share. */
function isWrongPath(code: string): boolean {
  return /^(ENOENT|ENOTDIR|EISDIR|ENAMETOOLONG|ELOOP|EACCES|EPERM)$/.test(code);
}

/**
 * Reads each secret, except those that a command prints, and returns why some could not be read, each with its path in the configuration. One
 * cause, such as a missing variable that many projects name, is one problem. A file that is `unavailable` is none: the calls that need the
 * secret fail, and no others.
 */
export async function secretProblems(needed: readonly NeededSecret[], env: Environment): Promise<string[]> {
  const problems = needed.map(async ({ path, kind, reference }) => {
    if (reference.kind === "command") return [];
    try {
      await readSecret(kind, reference, env);
      return [];
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return error.code === "config" ? [{ path, message: error.message }] : [];
    }
  });
  return problemsByCause((await Promise.all(problems)).flat());
}

/** One text for each message, with the first of its places. */
export function problemsByCause(problems: readonly ConfigIssue[]): string[] {
  const causes = Map.groupBy(problems, ({ message }) => message);
  return [...causes].map(([message, [first, ...others]]) => {
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return `${formatPath(first?.path ?? [])}${more}: ${message}`;
  });
}

/** The API keys to be read from variables, files and commands. `rotated` names the rotations that have made a key: their projects no longer need a first key. */
export function neededKeys(
  { projects, discovery, rotations }: Pick<Config, "projects" | "discovery" | "rotations">,
  rotated: ReadonlySet<string> = new Set(),
): NeededSecret[] {
  const written = projects.filter(({ isDiscovered }) => !isDiscovered);
  const entries = discovery?.entries ?? [];
  const discovering = new Set(entries.map(({ index }) => index));
  const places = [...written, ...entries].map((_, index) => index).filter((index) => !discovering.has(index));
  const keys = [
    ...written.map(({ key }, i) => ({ key, path: ["projects", places[i] ?? i, "key"] })),
    ...entries.map(({ key, index }) => ({ key, path: ["projects", index, "key"] })),
    // The file of a pattern is another one for each project. Of a command its program is checked, which is the same for all.
    ...entries.flatMap(({ projectKey: key, index }) =>
      key && !(key.kind === "file" && isPatternKey(key)) ? [{ key, path: ["projects", index, "projectKey"] }] : [],
    ),
    ...rotations.map(({ createWith: key, index }) => ({ key, path: ["rotations", index, "createWith"] })),
  ];
  return keys.flatMap(({ key, path }): NeededSecret[] => {
    if (key === undefined) return [];
    if (key.kind !== "rotation") return [{ path, kind: "key", reference: key }];
    return rotated.has(key.rotation) ? [] : [{ path: [...path, "first"], kind: "key", reference: key.first }];
  });
}

export function neededForAccess({ access }: Config["monitor"]): NeededSecret[] {
  if (access === undefined || access.kind === "none") return [];
  const path = ["monitor", "access"];
  return access.kind === "bearer"
    ? [{ path: [...path, "bearer"], kind: "token", reference: access.token }]
    : [{ path: [...path, "basic", "password"], kind: "password", reference: access.password }];
}

export function neededAddresses({ webhook, deadMan }: Config["notify"]): NeededSecret[] {
  return Object.entries({ webhook, deadMan }).flatMap(([name, reference]) =>
    reference ? [{ path: ["notify", name], kind: "address", reference }] : [],
  );
}

/** A secret must fit into a header. A longer value is probably the content of a wrong file. */
const SECRET_LENGTH_MAX = 4096;
/** The monitor may be attacked with as many guesses as the network carries. */
const ACCESS_SECRET_LENGTH_MIN = 16;

/** For a secret that is sent in a header without any encoding. */
function headerValueProblem(secret: string, word: string, schemeHint = ""): string | undefined {
  const scheme = SCHEME_AND_KEY.exec(secret)?.[1];
  if (scheme !== undefined)
    return `begins with the word "${scheme}": remove it, only the ${word} is expected${schemeHint}`;
  if (/\s/.test(secret)) return `holds a space or line break: expected the ${word} alone, on one line`;
  if (/^[\x21-\x7e]+$/.test(secret)) return undefined;
  return `holds a control character or one outside ASCII: expected the ${word} alone, as it was shown`;
}

function passwordProblem(password: string): string | undefined {
  if (!/[\p{Cc}\p{Cs}]/u.test(password)) return tooShortProblem(password);
  return "holds a line break or another control character: expected the password alone, on one line";
}

function addressProblem(text: string): string | undefined {
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) {
    return "does not hold an address: expected an https address alone, on one line";
  }
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== "" || password !== "") {
    return "holds a name or password before an @, which is not sent: expected an address that needs none";
  }
  if (protocol === "https:" || isLoopback(hostname)) return undefined;
  return "begins with http://: expected https, since the address is a secret (http is for this machine only)";
}

function tooShortProblem(secret: string): string | undefined {
  if ([...secret].length >= ACCESS_SECRET_LENGTH_MIN) return undefined;
  return `is too short to be safe: expected at least ${ACCESS_SECRET_LENGTH_MIN} characters, such as \`openssl rand -hex 32\` makes`;
}
