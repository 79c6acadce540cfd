// Runs the command that the command line names. A command's module is loaded only when it runs, to start fast.

import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { App } from "../app.ts";
import { AppError, errorText } from "../errors.ts";
import { CONFIG_FILE, programVersion } from "../package-files.ts";
import type { Environment } from "../proxy.ts";
import { escapeControlCharacters } from "../text.ts";
import { isDay } from "../usage/days.ts";
import { DIALECTS, USAGE_DIMENSIONS } from "../usage/dimensions.ts";
import { BACKFILL_MODES } from "../usage/export-plan.ts";
import { METRICS } from "../usage/metrics.ts";
import { GROUPINGS, type Grouping, groupingBy } from "../usage/series.ts";

/** Returns 0 if all went well, 1 if something failed (what succeeded is stored), 2 if the command line or the configuration is wrong. */
export async function runCommandLine(args: readonly string[], env: Environment, signal: AbortSignal): Promise<number> {
  let app: App | undefined;
  let status = 2;
  const program = defineCommands(await programVersion(), async (configPath, run) => {
    const { openApp } = await import("../app.ts");
    app = await openApp(env, configPath, signal);
    status = await run(app);
  });
  try {
    await program.parseAsync([...args], { from: "user" });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const text = `usage-export: ${textOrStack(error, signal)}\n`;
    process.stderr.write(escapeControlCharacters(app ? app.scrubber.scrub(text) : text));
    return error instanceof AppError && error.code === "config" ? 2 : 1;
  }
}

/** One line for a failure that a person can do something about; the stack for a bug of this program. */
function textOrStack(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return errorText(signal.reason);
  // Errors of the operating system and of the database have a code. Node's TypeErrors have one, too, and are bugs.
  const isSystemError = error instanceof Error && "code" in error && !(error instanceof TypeError);
  if (error instanceof AppError || isSystemError || !(error instanceof Error)) return errorText(error);
  return error.stack ?? error.message;
}

const ENVIRONMENT = `
Environment:
  DATABASE_URL             the Postgres database; without it, an embedded one in ./data
  USAGE_EXPORT_MASTER_KEY  seals stored API keys; needed as soon as there is a rotation
  LOG_LEVEL                trace, debug, info, warn, error, fatal or silent
  and the variables that the configuration names for API keys, such as USAGE_EXPORT_KEY`;

/** Makes the action that commander calls for a command. `load` imports the command's function, which gets the arguments and options. */
type MakeAction = (
  load: () => Promise<(app: App, ...args: never[]) => Promise<number>>,
) => (...given: unknown[]) => void | Promise<void>;

/** `run` runs the command that was chosen, and returns the exit status. */
type OnChosen = (configPath: string, run: (app: App) => Promise<number>) => void | Promise<void>;

/** Defines the commands with their options. Parsing a command line calls `onChosen`, which may run the command. */
export function defineCommands(version: string, onChosen: OnChosen): Command {
  const program = new Command("usage-export")
    .description("Every night, stores in Postgres what a speech service reports about usage, and rotates its API keys.")
    .version(version, "--version", "prints the version")
    .exitOverride()
    .showHelpAfterError("(--help lists commands and options)")
    // Without this, the options after `jobs next` would be parsed as options of `jobs`, which has the same ones.
    .enablePositionalOptions()
    .addHelpText("after", ENVIRONMENT)
    .helpCommand("help [command]", "what a command does, its options and examples");
  const makeAction: MakeAction =
    (load) =>
    (...given) => {
      // Commander passes the arguments, then the options, and last the command itself.
      const args = given.slice(0, -1) as never[];
      const { config } = given.at(-2) as { readonly config: string };
      return onChosen(config, async (app) => (await load())(app, ...args));
    };
  defineSetUp(program, makeAction);
  defineWork(program, makeAction);
  defineWorkerAndJobs(program, makeAction);
  defineAnswers(program, makeAction);
  defineTools(program, makeAction);
  return program;
}

function add(parent: Command, name: string, summary: string, ...examples: readonly string[]): Command {
  const config = new Option("--config <file>", "the configuration file").default(CONFIG_FILE);
  // These commands read no configuration, but accept the option, so that a script may give it to every command.
  const withoutConfig = ["demo", "dump", "emulator", "explain", "keys", "migrate", "report", "rewrap", "schema"];
  return parent
    .command(name)
    .description(summary)
    .addOption(config.hideHelp(withoutConfig.includes(name)))
    .addHelpText("after", ["\nExamples:", ...examples.map((line) => `  usage-export ${line}`)].join("\n"));
}

function addWithJson(parent: Command, name: string, summary: string, ...examples: readonly string[]): Command {
  return add(parent, name, summary, ...examples).option("--json", "answers in JSON");
}

function choice(flags: string, summary: string, values: readonly string[], byDefault?: unknown): Option {
  return new Option(flags, summary).choices(values).default(byDefault);
}

function defineSetUp(program: Command, makeAction: MakeAction): void {
  const demo = "shows the whole product with nothing configured: an emulator, an embedded database, 30 days of usage";
  add(program, "demo", demo, "demo", "demo --serve")
    .option("--serve", "keeps the dashboard up until Ctrl-C")
    .action(makeAction(async () => (await import("./demo.ts")).runDemo));

  const groupings = ["none", "accessor", "model", "tags"];
  const init = "asks a few questions, tries the answers with the service, and writes jobs.config.json";
  add(program, "init", init, "init", "init --yes --project 2ad1bd12-6e1c-4b7a-9b4f-3a1a0f5b3c9e --grouping none model")
    .option("--base-url <address>", "the service's address", "https://api.deepgram.com")
    .option("--key-variable <name>", "the environment variable that holds the API key", "USAGE_EXPORT_KEY")
    .option("--project <id>", "the project's id; default: the only project of the key")
    .addOption(choice("--grouping <name...>", "how to break usage down", GROUPINGS, groupings))
    .option("--days <number>", "how many days to read again each night", wholeNumberOption(1, 366), 7)
    .option("--yes", "asks nothing; uses the options and their defaults")
    .action(makeAction(async () => (await import("./init.ts")).runInit));

  const check = "checks the configuration, the database, and the projects: keys, windows, groupings and filters";
  addWithJson(program, "check", check, "check", "check --offline --config staging.config.json")
    .option("--offline", "checks the configuration and the environment; opens no database and calls no service")
    .option("--confirm-projects", "accepts the discovered projects, even if more than half of the known ones are gone")
    .action(makeAction(async () => (await import("./check.ts")).runCheck));

  const migrate = "creates or updates the tables and views; several replicas may run it at once";
  const migrating = addWithJson(program, "migrate", migrate, "migrate");
  migrating.action(makeAction(async () => (await import("./migrate.ts")).runMigrate));
}

function withSelection(command: Command): Command {
  return command
    .option("--job <name...>", "only these jobs")
    .option("--project <name...>", "only these projects")
    .option("--grouping <name...>", "only these groupings, such as model or line_item,tags", parseGroupings)
    .option("--filter <name...>", "only these filters");
}

function defineWork(program: Command, makeAction: MakeAction): void {
  const exportExample = "export --job nightly --project production --day 2026-03-01 2026-03-02";
  withSelection(addWithJson(program, "export", "runs export jobs now", "export", exportExample))
    .option("--day <YYYY-MM-DD...>", "reads these days instead of the job's window", parseDays)
    .action(makeAction(async () => (await import("./export.ts")).runExport));

  const backfill = "reads past days; after a stop, run it again to continue (--only all begins anew)";
  const example = "backfill --from 2026-01-01 --to 2026-01-31";
  withSelection(addWithJson(program, "backfill", backfill, example, `${example} --only failed --grouping model`))
    .requiredOption("--from <YYYY-MM-DD>", "the first day; required", parseDay)
    .requiredOption("--to <YYYY-MM-DD>", "the last day, which must be over in UTC; required", parseDay)
    .addOption(choice("--only <mode>", "days never read, days that failed, or all", BACKFILL_MODES, "missing"))
    .option("--dry-run", "prints what would be read and how long that takes; makes no call")
    .action(makeAction(async () => (await import("./backfill.ts")).runBackfill));

  const rotateExamples = ["rotate --dry-run", "rotate --job exporter --now", "rotate --job exporter --rollback"];
  addWithJson(program, "rotate", "runs rotation jobs that are due", ...rotateExamples)
    .option("--job <name...>", "only these rotations")
    .option("--project <name...>", "only the keys of these projects, by name or id")
    .option("--now", "makes a new key, even if none is due")
    .option("--dry-run", "prints what would be done and why; makes no call")
    .option("--rollback", "makes the previous key the current one again")
    .action(makeAction(async () => (await import("./rotate.ts")).runRotate));

  const keysSummary = "lists the API keys with state, age and last use, but without their secrets";
  const keys = addWithJson(program, "keys", keysSummary, "keys", "keys --json");
  keys.action(makeAction(async () => (await import("./keys.ts")).runKeys));
  const rewrap = "opens stored keys with USAGE_EXPORT_MASTER_KEY_PREVIOUS and seals them with USAGE_EXPORT_MASTER_KEY";
  add(keys, "rewrap", rewrap, "keys rewrap").action(makeAction(async () => (await import("./keys.ts")).runRewrap));
}

function defineWorkerAndJobs(program: Command, makeAction: MakeAction): void {
  const start = "runs the worker, which runs jobs on schedule and serves the dashboard; SIGTERM ends it";
  add(program, "start", start, "start", "start --embedded")
    .option("--embedded", "uses the embedded database in ./data; needed without DATABASE_URL, refused with it")
    .action(makeAction(async () => (await import("./start.ts")).runStart));
  add(program, "health", "asks the worker on this machine whether it can work", "health", "health --live")
    .option("--live", "asks only whether its process is alive")
    .action(makeAction(async () => (await import("./health.ts")).runHealth));
  const jobs = addWithJson(program, "jobs", "lists the jobs, when they run next, and which are paused", "jobs");
  jobs.action(makeAction(async () => (await import("./jobs.ts")).runJobs));
  addWithJson(jobs, "next", "prints when a job runs next", "jobs next nightly --count 10")
    .argument("<name>", "the job's name")
    .option("--count <number>", "how many of the next run times to print", wholeNumberOption(1, 1000), 5)
    .action(makeAction(async () => (await import("./jobs.ts")).runJobsNext));
  const pauseExample = 'jobs pause nightly --why "the service moves on Monday"';
  addWithJson(jobs, "pause", "stops the workers from running a job until it is resumed", pauseExample)
    .argument("<name>", "the job's name")
    .requiredOption("--why <reason>", "the reason, which `jobs` shows; required", parseReason)
    .action(makeAction(async () => (await import("./jobs.ts")).runJobsPause));
  addWithJson(jobs, "resume", "lets the workers run a job again; they catch up on what was due", "jobs resume nightly")
    .argument("<name>", "the job's name")
    .action(makeAction(async () => (await import("./jobs.ts")).runJobsResume));
}

function defineAnswers(program: Command, makeAction: MakeAction): void {
  const status = "says whether all is well; if not, what is wrong, since when, and the next step";
  addWithJson(program, "status", status, "status", 'status --project "prod-*"')
    .option("--project <name...>", 'shows only how complete these projects are; "*" stands for any text')
    .action(makeAction(async () => (await import("./status.ts")).runStatus));

  const reportExample = "report --from 2026-01-01 --to 2026-01-31 --out january.html";
  add(program, "report", "writes usage and cost of a period as one HTML file to send on", "report", reportExample)
    .option("--out <file>", "the file to write; - writes to standard output", "usage-report.html")
    .option("--from <YYYY-MM-DD>", "the first day; default: 27 days before --to", parseDay)
    .option("--to <YYYY-MM-DD>", "the last day; default: yesterday in UTC", parseDay)
    .option("--project <name>", "only this project")
    .action(makeAction(async () => (await import("./report.ts")).runReport));

  const explain = "says which models, keys, tags and other groups made usage or cost rise or fall";
  const metric = "what to explain; cost needs an export of billing, or prices in the configuration";
  const explainExample = "explain --from 2026-03-01 --to 2026-03-31 --metric hours --limit 10";
  addWithJson(program, "explain", explain, "explain", "explain --day 2026-03-02 --project production", explainExample)
    .option("--day <YYYY-MM-DD>", "this day, compared with the same weekday a week before", parseDay)
    .option("--from <YYYY-MM-DD>", "the first day; default: 6 days before --to", parseDay)
    .option("--to <YYYY-MM-DD>", "the last day; default: yesterday in UTC", parseDay)
    .addHelpText("after", "\nCompares a month with the month before it, and other days with days whole weeks earlier.")
    .option("--project <name...>", "only these projects")
    .addOption(choice("--metric <name...>", metric, [...METRICS, "cost"], ["requests", "cost"]))
    .addOption(choice("--grouping <name...>", "by these groupings, besides line items and projects", USAGE_DIMENSIONS))
    .option("--limit <number>", "how many groups each table names; the rest is one line", wholeNumberOption(1, 1000), 5)
    .action(makeAction(async () => (await import("./explain.ts")).runExplain));
}

function defineTools(program: Command, makeAction: MakeAction): void {
  const changedExample = "dump --view usage_by_model --changed-since beginning --out usage.jsonl";
  const gapsExample = "dump --view coverage_gaps --format jsonl";
  const format = "csv for spreadsheets, jsonl for programs; default: what --out ends in; required without --out";
  const since = 'only days that changed since this moment, as the last dump printed it, or "beginning"; needs --out';
  add(program, "dump", "writes a view of schema bi to a file or standard output", gapsExample, changedExample)
    .requiredOption("--view <name>", "the view, without the schema; required")
    .option("--from <YYYY-MM-DD>", "the first day; default: the oldest", parseDay)
    .option("--to <YYYY-MM-DD>", "the last day; default: the newest", parseDay)
    .addOption(choice("--format <name>", format, ["csv", "jsonl"]))
    .option("--out <file>", "the file to write; - writes to standard output", "-")
    .option("--changed-since <moment>", since)
    .action(makeAction(async () => (await import("./dump.ts")).runDump));

  const schema = add(program, "schema", "prints the JSON Schema of the configuration", "schema");
  schema.action(makeAction(async () => (await import("./schema.ts")).runSchema));

  const emulator = "runs an emulator of the service, for trials; set USAGE_EXPORT_KEY to any text: that is its API key";
  const dialect = 'parameter names: "interface" (grouping=model), or "2026" as the public service (grouping=models)';
  add(program, "emulator", emulator, "emulator --port 8080 --project trial", "emulator --project berlin paris rome")
    .option("--port <number>", "the port; 0 chooses a free one", wholeNumberOption(0, 65_535), 0)
    .addOption(choice("--dialect <name>", dialect, DIALECTS, "interface"))
    .option("--project <id...>", "the ids of its projects; one key reads them all", ["trial"])
    .action(makeAction(async () => (await import("./emulator.ts")).runEmulator));
}

// Commander puts the messages of the errors below behind "error: option ... argument '...' is invalid.".

function parseDay(text: string): string {
  if (!isDay(text)) throw new InvalidArgumentError("expected a day that exists, as YYYY-MM-DD.");
  return text;
}

function parseDays(text: string, days: readonly string[] = []): readonly string[] {
  return [...days, parseDay(text)];
}

function parseGroupings(text: string, groupings: readonly Grouping[] = []): readonly Grouping[] {
  const grouping = groupingBy(text.split(","));
  if (grouping !== undefined) return [...groupings, grouping];
  throw new InvalidArgumentError(`expected ${GROUPINGS.join(", ")}, line_item, or several joined by commas.`);
}

function parseReason(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("expected a reason.");
  return text.trim();
}

function wholeNumberOption(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}.`);
  };
}
