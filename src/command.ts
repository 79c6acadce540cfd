// Runs a program from the configuration, without a shell. One that delivers a key gets it on standard input; one that supplies a key prints it.

import { addAbortListener, once } from "node:events";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { setImmediate as nextRead, setTimeout as sleep } from "node:timers/promises";
import { systemCode } from "./errors.ts";

type CommandOptions = {
  readonly stdin: string;
  /** The command gets these, PATH and HOME. The other variables of this process may hold secrets. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly timeoutSeconds: number;
  readonly signal?: AbortSignal;
};

const OUTPUT_LENGTH_MAX = 64 * 1024;
/** How long to wait for the output to end after the exit. A process that the command left running may keep it open for ever. */
const OUTPUT_MS_MAX = 200;

/** Whether there is an executable file at this path or, for a name without a slash, in a folder of PATH. */
export async function isProgram(program: string): Promise<boolean> {
  const folders = program.includes("/") ? ["."] : (process.env.PATH ?? "").split(path.delimiter);
  for (const folder of folders) {
    const file = path.resolve(folder, program);
    const found = await access(file, constants.X_OK)
      .then(() => stat(file))
      .catch(() => undefined);
    if (found?.isFile()) return true;
  }
  return false;
}

/** Returns the last part of the output. `failure` says what went wrong, such as "ended with 1"; it is undefined after a success. */
export async function runCommand([program = "", ...args]: readonly string[], options: CommandOptions) {
  const { stdin, variables, timeoutSeconds, signal } = options;
  const { PATH, HOME } = process.env;
  const { spawn } = await import("node:child_process");
  signal?.throwIfAborted();
  const child = spawn(program, args, {
    env: { PATH, HOME, ...variables },
    // A process group of its own, so that the time limit also ends what the command has started.
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  // An error means that the command did not read its input, which is no failure.
  child.stdin.on("error", () => {}).end(stdin);
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    stdout = (stdout + part).slice(-OUTPUT_LENGTH_MAX);
  });
  const closed = once(child, "close").catch(() => {});
  const limit = AbortSignal.timeout(timeoutSeconds * 1000);
  const end = AbortSignal.any(signal ? [signal, limit] : [limit]);
  using _ = addAbortListener(end, () => killGroup(child.pid));
  try {
    const [status, endedBy] = await once(child, "exit");
    signal?.throwIfAborted();
    if (limit.aborted) return { failure: `took longer than ${timeoutSeconds} s`, stdout };
    await Promise.race([closed, sleep(OUTPUT_MS_MAX)]);
    // If this process was busy all that time, it may not have read the output yet: timers fire before reads.
    await nextRead();
    return { failure: status === 0 ? undefined : `ended with ${endedBy ?? status}`, stdout };
  } catch (error) {
    signal?.throwIfAborted();
    return { failure: `could not be run (${systemCode(error) || "unknown"})`, stdout };
  } finally {
    child.stdout.destroy();
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group has ended by itself.
  }
}
