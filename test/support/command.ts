// Runs a command in the test's own process, which takes a fraction of the time of starting the program. It is the code that users
// install. Exit by a signal, crashes, time limits and closed outputs need the program itself: program.ts starts it.

import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire } from "node:module";
import type { runCommandLine } from "../../src/cli/command-line.ts";
import { MAIN, type ProgramOptions, type ProgramResult } from "./program.ts";

type Texts = { stdout: string; stderr: string };
type CommandLine = { readonly runCommandLine: typeof runCommandLine };

const SERVING = ["start", "demo", "emulator"];
/** The runtime and the database's driver read these variables from the process. */
const PROCESS_VARIABLE = /^(TZ|PATH|HOME|NODE_.*|PG.*)$/;

/** Whether a command only works in a process of its own. The embedded database is locked by a process. */
export function needsProcess([command = ""]: readonly string[], env: ProgramOptions["env"]): boolean {
  const isSet = Object.keys(env).some((name) => PROCESS_VARIABLE.test(name));
  return isSet || SERVING.includes(command) || env.DATABASE_URL === undefined;
}

/** What a command writes is found by its asynchronous context, because several run at once. */
const running = new AsyncLocalStorage<Texts>();
let loaded: Promise<CommandLine> | undefined;

/** The working directory of this process stays the folder of the last command. */
export async function runCommand(
  args: readonly string[],
  { env, cwd = process.cwd() }: Pick<ProgramOptions, "env" | "cwd">,
): Promise<ProgramResult> {
  loaded ??= loadCommandLine();
  const { runCommandLine } = await loaded;
  process.chdir(cwd);
  const texts: Texts = { stdout: "", stderr: "" };
  const startedMs = performance.now();
  const status = await running.run(texts, () => runCommandLine(args, env, new AbortController().signal));
  return { status, ...texts, durationMs: performance.now() - startedMs };
}

async function loadCommandLine(): Promise<CommandLine> {
  for (const name of ["stdout", "stderr"] as const) collectWrites(name);
  if (MAIN.endsWith(".ts")) return import("../../src/cli/command-line.ts");
  return createRequire(MAIN)("./command-line.cjs");
}

function collectWrites(name: keyof Texts): void {
  const stream = process[name];
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  const collect = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const texts = running.getStore();
    if (!texts) return write(chunk, ...rest);
    texts[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    const done = rest.at(-1);
    if (typeof done === "function") process.nextTick(done);
    return true;
  };
  stream.write = collect as typeof stream.write;
}
