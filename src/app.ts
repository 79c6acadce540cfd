// What every command gets: the environment's variables, outputs and a log. The log is JSON lines; on a terminal, lines for a person.

import os from "node:os";
import { type Logger, pino } from "pino";
import { AppError } from "./errors.ts";
import { type Environment, proxyVariable } from "./proxy.ts";
import { Scrubber, Secret, urlSecrets } from "./secret.ts";
import { escapeControlCharacters } from "./text.ts";

export type App = {
  readonly env: Environment;
  readonly configPath: string;
  readonly signal: AbortSignal;
  readonly scrubber: Scrubber;
  readonly log: Logger;
  /** The user and the host, recorded with paused jobs and in the key ledger. */
  readonly actor: string;
  /** Writes to standard output. */
  readonly write: (text: string) => void;
  /** Whether standard error, where the log goes, is a terminal. */
  readonly hasTerminal: boolean;
};

const SECRET_VARIABLES = ["DATABASE_URL", "USAGE_EXPORT_MASTER_KEY", "USAGE_EXPORT_MASTER_KEY_PREVIOUS"];

export async function openApp(env: Environment, configPath: string, signal: AbortSignal): Promise<App> {
  requireVerifiedTls(env);
  const scrubber = new Scrubber();
  for (const name of SECRET_VARIABLES) scrubber.add(new Secret(env[name] ?? ""));
  const database = env.DATABASE_URL ?? "";
  // A user name without a password is no secret in the database's URL. In a proxy's URL it may be a token.
  const urls = [URL.parse(database)?.password ? database : "", proxyVariable(env).address];
  for (const secret of urls.flatMap(urlSecrets)) scrubber.add(secret);
  const hasTerminal = process.stderr.isTTY === true;
  const log = await openLog(env.LOG_LEVEL, hasTerminal, scrubber);
  const write = (text: string) => void process.stdout.write(escapeControlCharacters(scrubber.scrub(text)));
  return { env, configPath, signal, scrubber, log, actor: actorOf(env), write, hasTerminal };
}

function actorOf({ SUDO_USER }: Environment): string {
  const host = os.hostname();
  try {
    return `${SUDO_USER || os.userInfo().username} on ${host}`;
  } catch {
    // In many containers the current user has no name.
    return host;
  }
}

/** With NODE_TLS_REJECT_UNAUTHORIZED=0 only clients that demand verification check certificates; the database driver demands none. */
function requireVerifiedTls({ NODE_TLS_REJECT_UNAUTHORIZED }: Environment): void {
  if (NODE_TLS_REJECT_UNAUTHORIZED !== "0") return;
  const next = "remove it; to trust an authority of your own, set NODE_EXTRA_CA_CERTS=FILE";
  throw new AppError("config", `NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the checks of certificates: ${next}`);
}

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

export async function openLog(level: string | undefined, isTerminal: boolean, scrubber: Scrubber): Promise<Logger> {
  if (level !== undefined && !LEVELS.includes(level)) {
    throw new AppError("config", `LOG_LEVEL: expected one of ${LEVELS.join(", ")}; got ${JSON.stringify(level)}`);
  }
  const write = (line: string) => void process.stderr.write(scrubber.scrub(line));
  const levelOrDefault = level ?? (isTerminal ? "warn" : "info");
  const options = { level: levelOrDefault, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (!isTerminal) return pino(options, { write: (line) => write(`${escapeControlCharacters(line.trimEnd())}\n`) });
  const { prettyFactory } = await import("pino-pretty");
  const lineOf = prettyFactory({ colorize: true, translateTime: "SYS:HH:MM:ss", singleLine: true });
  // Texts are escaped before the line is coloured, because colours are control characters.
  const reviver = (_: string, value: unknown) => (typeof value === "string" ? escapeControlCharacters(value) : value);
  // The escape sequence clears the current line of the terminal, which may hold a progress bar.
  return pino(options, { write: (line) => write(`\r\x1b[K${lineOf(JSON.parse(line, reviver))}`) });
}
