// A sink that is a command. The key goes to its standard input: arguments and environment stand in the process list.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../errors.ts";
import { printable } from "../printable.ts";
import type { Secret } from "../secret.ts";
import { isFreeOf } from "../secret-search.ts";
import type { Sink } from "./policy.ts";

type CommandSink = Extract<Sink, { kind: "command" }>;

const OUTPUT_LENGTH_MAX = 64 * 1024;
const OUTPUT_SEARCHED_MAX = 2_000;
const OUTPUT_SHOWN_MAX = 300;
/** How long the output may come after the end: something that the command left running may hold it open for ever. */
const OUTPUT_MS_MAX = 200;

export async function testKeyCommand(program: string): Promise<void> {
  const places = program.includes("/")
    ? [path.resolve(program)]
    : (process.env.PATH ?? "").split(path.delimiter).map((folder) => path.join(folder, program));
  for (const place of places) {
    const found = await access(place, constants.X_OK)
      .then(() => stat(place))
      .catch(() => undefined);
    if (found?.isFile()) return;
  }
  throw new AppError("delivery", `the command ${JSON.stringify(program)} is not there, or may not be run`);
}

export async function runKeyCommand(
  sink: CommandSink,
  key: Secret,
  apiKeyId: string,
  scrub: (text: string) => string,
): Promise<void> {
  const [program = "", ...args] = sink.command;
  const { PATH, HOME } = process.env;
  const child = spawn(program, args, {
    // All of it: ours holds other secrets.
    env: { PATH, HOME, USAGE_EXPORT_API_KEY_ID: apiKeyId },
    // A group of its own, so that the time limit ends what the command has started, too.
    detached: true,
    stdio: "pipe",
  });
  // A command that does not read its input is not wrong for that.
  child.stdin.on("error", () => {}).end(`${key.reveal()}\n`);
  const output = collect(child);
  try {
    const failure = await end(child, sink.timeoutSeconds);
    if (failure === undefined) return;
    throw new AppError(
      "delivery",
      `the command ${JSON.stringify(program)} ${failure}${lastLine(await output(), key, scrub)}`,
    );
  } finally {
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

/** How it ended, undefined for well. */
async function end(child: ChildProcessWithoutNullStreams, timeoutSeconds: number): Promise<string | undefined> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup(child);
  }, timeoutSeconds * 1000);
  try {
    const [status, signal] = await once(child, "exit");
    if (isLate) return `took longer than ${timeoutSeconds} s`;
    return status === 0 ? undefined : `ended with ${signal ?? status}`;
  } catch (error) {
    return `could not be run (${error instanceof Error && "code" in error ? error.code : "unknown"})`;
  } finally {
    clearTimeout(timer);
  }
}

function killGroup({ pid }: ChildProcessWithoutNullStreams): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** Returns what was written last, once the command has ended. */
function collect(child: ChildProcessWithoutNullStreams): () => Promise<string> {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part: string) => {
      text = (text + part).slice(-OUTPUT_LENGTH_MAX);
    });
  }
  const closed = once(child, "close").catch(() => {});
  return async () => {
    await Promise.race([closed, sleep(OUTPUT_MS_MAX)]);
    return text;
  };
}

/** The command knows the key and may print it. Only its last line is shown, and only if it contains no part of the key. */
function lastLine(output: string, key: Secret, scrub: (text: string) => string): string {
  const line =
    output
      .trimEnd()
      .split(/[\r\n]/)
      .at(-1) ?? "";
  const said = printable(line.replaceAll(key.reveal(), `${key}`)).slice(-OUTPUT_SEARCHED_MAX);
  if (!isFreeOf(said, key.reveal())) return "; its last line is not shown, as it may hold the key";
  // Packed, encrypted or hashed text can't be decoded here and may still contain the key.
  const packed = /(?=[A-Za-z=+]*\d)(?=[\d=+]*[A-Za-z])[A-Za-z0-9=+]{20,}/g;
  const shown = scrub(said).replaceAll(packed, "[hidden]").slice(-OUTPUT_SHOWN_MAX);
  return shown && `: ${shown}`;
}
