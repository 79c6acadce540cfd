// Runs a process to its end.

import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

export const PROGRAM = path.join(import.meta.dirname, "../../src/main.ts");

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
