// Runs the command that the command line names, reports its failure and returns its exit status.

import { CommanderError } from "commander";
import type { App } from "../app.ts";
import { AppError, errorText } from "../errors.ts";
import { programVersion } from "../package-files.ts";
import type { Environment } from "../proxy.ts";
import { escapeControlCharacters } from "../text.ts";
import { type CommandRun, defineCommands } from "./commands.ts";

/** Returns 0 if all is done; 1 if something failed, and what succeeded is stored; 2 if the command line or the configuration is wrong. */
export async function runCommandLine(args: readonly string[], env: Environment, signal: AbortSignal): Promise<number> {
  let chosen: { readonly configPath: string; readonly run: CommandRun } | undefined;
  const program = defineCommands(await programVersion(), (configPath, run) => {
    chosen = { configPath, run };
  });
  try {
    program.parse([...args], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  if (!chosen) return 2;
  let app: App | undefined;
  try {
    // --help does not need it.
    const { openApp } = await import("../app.ts");
    app = await openApp(env, chosen.configPath, signal);
    return await chosen.run(app);
  } catch (error) {
    const text = `usage-export: ${failureText(error, signal)}\n`;
    process.stderr.write(escapeControlCharacters(app ? app.scrubber.scrub(text) : text));
    return error instanceof AppError && error.code === "config" ? 2 : 1;
  }
}

/** One line for a failure that somebody can act on; the stack for a bug of this program. */
function failureText(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return errorText(signal.reason);
  // Errors of the operating system and of the database have a code. Node's TypeErrors have one, too, and are bugs.
  const isSystemError = error instanceof Error && "code" in error && !(error instanceof TypeError);
  if (error instanceof AppError || isSystemError || !(error instanceof Error)) return errorText(error);
  return error.stack ?? error.message;
}
