// Runs a process to its end, and builds the program as users run it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");

let built: Promise<void> | undefined;

/** Builds the package once, and returns the path of its program. */
export async function builtProgram(): Promise<string> {
  built ??= run(process.execPath, [path.join(ROOT, "tools/build.ts")], { env: {} });
  await built;
  return path.join(ROOT, "dist/usage-export.cjs");
}

type Options = {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Written to the standard input of the process. */
  readonly input?: string;
};

/** Rejects if the exit status is not 0. */
export async function run(command: string, args: readonly string[], { env, cwd, input = "" }: Options): Promise<void> {
  const child = spawn(command, args, {
    ...(cwd !== undefined && { cwd }),
    env: { PATH: process.env.PATH, ...env },
    stdio: ["pipe", "ignore", "inherit"],
  });
  child.stdin.end(input);
  const [status] = await once(child, "exit");
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}`);
}
