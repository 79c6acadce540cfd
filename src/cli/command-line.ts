// Runs the command that the command line names, reports its failure and returns its exit status.

import { Command, CommanderError } from "commander";
import type { App } from "../app.ts";
import { AppError, errorText } from "../errors.ts";
import { CONFIG_FILE, programVersion } from "../package-files.ts";
import type { Environment } from "../proxy.ts";
import { escapeControlCharacters } from "../text.ts";
import { COMMANDS } from "./commands.ts";

const ENVIRONMENT = `
Environment:
  DATABASE_URL             the Postgres database; without it, an embedded one in ./data
  MIGRATION_DATABASE_URL   what migrate uses in its place, past a connection pooler
  USAGE_EXPORT_MASTER_KEY  seals stored API keys; needed as soon as there is a rotation
  LOG_LEVEL                trace, debug, info, warn, error, fatal or silent
  and the variables that the configuration names for API keys, such as USAGE_EXPORT_KEY`;

type CommandRun = (app: App) => Promise<number>;

/** Runs one command and returns its exit status: 0 done, 1 failed, 2 the command line or the configuration is wrong. */
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
  return runCommand(chosen.configPath, chosen.run, env, signal);
}

/** `choose` is called with the command that a parsed command line names. */
export function defineCommands(version: string, choose: (configPath: string, run: CommandRun) => void): Command {
  const program = new Command("usage-export")
    .description("Nightly usage snapshots of a speech service in Postgres, and API keys that stay young.")
    .version(version, "--version", "prints the version")
    .exitOverride()
    .showHelpAfterError("(--help shows what there is)")
    // Without this, the options after `keys rewrap` would be parsed as options of `keys`, which has the same ones.
    .enablePositionalOptions()
    .addHelpText("after", ENVIRONMENT)
    .helpCommand("help [command]", "what a command does and how to use it");

  for (const definition of COMMANDS) {
    const [word = "", subcommand] = definition.name.split(" ");
    const parent = program.commands.find((one) => one.name() === word) ?? program;
    const command = parent
      .command(subcommand ?? word)
      .description(definition.summary)
      .exitOverride()
      .allowExcessArguments(false)
      .option("--config <file>", "the configuration", CONFIG_FILE)
      .addHelpText(
        "after",
        () => `\nExamples:\n${definition.examples.map((line) => `  usage-export ${line}`).join("\n")}`,
      )
      .action(() => {
        const options = command.opts();
        choose(options.config, (app) => definition.run(app, options, command.args));
      });
    for (const argument of definition.arguments ?? []) command.addArgument(argument);
    for (const option of definition.options ?? []) command.addOption(option);
  }
  return program;
}

async function runCommand(configPath: string, run: CommandRun, env: Environment, signal: AbortSignal): Promise<number> {
  let app: App | undefined;
  try {
    // Loaded here so that --help does not wait for modules that only commands need.
    const { openApp } = await import("../app.ts");
    app = await openApp(env, configPath, signal);
    return await run(app);
  } catch (error) {
    const text = `usage-export: ${failureText(error, signal)}\n`;
    process.stderr.write(escapeControlCharacters(app ? app.scrubber.scrub(text) : text));
    return error instanceof AppError && error.code === "config" ? 2 : 1;
  }
}

/** One line for a failure that somebody can act on; the stack for a bug of this program. */
function failureText(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return errorText(signal.reason);
  if (error instanceof AppError || isSystemError(error)) return errorText(error);
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/**
 * An error of the operating system or the database server, whose message says what is wrong. Node's TypeErrors have a code as well, and
 * are bugs.
 */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && !(error instanceof TypeError);
}
