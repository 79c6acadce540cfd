// Runs a command of the built program in the test's own process: starting the program takes many times as long. SIGKILL, crashes, time
// limits and closed outputs need the program itself: program.ts starts it.

import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire } from "node:module";
import type { runCommandLine } from "../../src/cli/commands.ts";
import { AppError } from "../../src/errors.ts";
import { MAIN, openOutput, type Program, type ProgramOptions } from "./program.ts";

type Output = ReturnType<typeof openOutput>;
type CommandLine = { readonly runCommandLine: typeof runCommandLine };

/** The runtime and the database's driver read these variables from the process. */
const PROCESS_VARIABLE = /^(TZ|PATH|HOME|NODE_.*|PG.*)$/;

/** Whether a command only works in a process of its own. */
export function needsProcess([command = ""]: readonly string[], env: ProgramOptions["env"]): boolean {
  return command === "demo" || Object.keys(env).some((name) => PROCESS_VARIABLE.test(name));
}

/** What a command writes is found by its asynchronous context, because several run at once. */
const running = new AsyncLocalStorage<Output>();
let loaded: Promise<CommandLine> | undefined;

/** A signal other than SIGHUP stops the command as SIGTERM does. The working directory of this process stays the folder of the last command. */
export function startCommand(
  args: readonly string[],
  { env, cwd = process.cwd() }: Pick<ProgramOptions, "env" | "cwd">,
): Program {
  const output = openOutput();
  const stop = new AbortController();
  async function run() {
    loaded ??= loadCommandLine();
    const { runCommandLine } = await loaded;
    process.chdir(cwd);
    const status = await running.run(output, () => runCommandLine(args, env, stop.signal)).finally(output.close);
    return { status, ...output.texts };
  }
  const ended = run();
  const { waitFor, count } = output;
  const kill = (signal: NodeJS.Signals) => {
    if (signal === "SIGKILL" || signal === "SIGSTOP") throw new Error(`${signal} needs a process of its own`);
    // A real SIGHUP would end the tests if the command no longer listens for it.
    if (signal === "SIGHUP") running.run(output, () => process.emit(signal));
    else stop.abort(new AppError("stopped", `stopped by ${signal}`));
  };
  const end = async () => {
    kill("SIGTERM");
    await ended;
  };
  return { pid: process.pid, waitFor, count, kill, ended, [Symbol.asyncDispose]: end };
}

async function loadCommandLine(): Promise<CommandLine> {
  for (const name of ["stdout", "stderr"] as const) collectWrites(name);
  if (MAIN.endsWith(".ts")) return import("../../src/cli/commands.ts");
  return createRequire(MAIN)("./commands.cjs");
}

function collectWrites(name: keyof Output["texts"]): void {
  const stream = process[name];
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  const collect = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const output = running.getStore();
    if (!output) return write(chunk, ...rest);
    output.add(name, typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
    const done = rest.at(-1);
    if (typeof done === "function") process.nextTick(done);
    return true;
  };
  stream.write = collect as typeof stream.write;
}
