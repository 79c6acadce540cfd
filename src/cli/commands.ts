// Which commands and options there are, and how the values of options are parsed. A command's own module is loaded when it
// runs, so that no command waits for the modules of another.

import { Command, InvalidArgumentError, Option, type OptionValues } from "commander";
import type { App } from "../app.ts";
import { DUMP_FORMATS } from "../dump/view.ts";
import { CONFIG_FILE } from "../package-files.ts";
import { BACKFILL_MODES } from "../usage/backfill.ts";
import { isDay } from "../usage/days.ts";
import { GROUPINGS } from "../usage/series.ts";
import { examplesText } from "./examples.ts";

export type CommandRun = (app: App) => Promise<number>;
/** Loads what a command does. */
type LoadCommand = (options: OptionValues, args: readonly string[]) => Promise<CommandRun>;
/** Adds a command, to another one where it is given. */
type AddCommand = (name: string, summary: string, load: LoadCommand, parent?: Command) => Command;

export function defineCommands(version: string, choose: (configPath: string, run: CommandRun) => void): Command {
  const program = new Command("usage-export")
    .description("Nightly usage snapshots of a speech service in Postgres, and API keys that stay young.")
    .version(version, "--version", "prints the version")
    .exitOverride()
    .showHelpAfterError("(--help shows what there is)")
    // Else what stands behind `keys rewrap` would be taken for options of `keys`, which has the same ones.
    .enablePositionalOptions()
    .helpCommand("help [command]", "what a command does and how to use it");

  const add: AddCommand = (name, summary, load, parent = program) =>
    parent
      .command(name)
      .addHelpText("after", examplesText(parent === program ? name : `${parent.name()} ${name}`))
      .description(summary)
      .exitOverride()
      .allowExcessArguments(false)
      .option("--config <file>", "the configuration", CONFIG_FILE)
      .action(function chosen(this: Command) {
        const options = this.opts();
        choose(options.config, async (app) => (await load(options, this.args))(app));
      });

  add(
    "demo",
    "the whole product on this machine with nothing configured: emulator, embedded database, 30 days",
    async (options) => {
      const { runDemo } = await import("./demo.ts");
      return (app) => runDemo(app, options);
    },
  ).option("--serve", "keeps the dashboard up until it is told to stop");

  add(
    "check",
    "checks the configuration, the database and, per project, the key and what the service honours",
    async (options) => {
      const { runCheck } = await import("./check.ts");
      return (app) => runCheck(app, options);
    },
  )
    .option("--offline", "stops after the configuration")
    .option("--json", "answers in JSON");

  add("migrate", "brings the database up to date; safe from several replicas at once", async (options) => {
    const { runMigrate } = await import("./migrate.ts");
    return (app) => runMigrate(app, options);
  }).option("--json", "answers in JSON");

  const withSelection = (command: Command) =>
    command
      .option("--job <name...>", "only these jobs")
      .option("--project <name...>", "only these projects")
      .addOption(new Option("--grouping <name...>", "only these groupings").choices(GROUPINGS))
      .option("--filter <name...>", "only these filters");

  withSelection(
    add("export", "runs export jobs now", async (options) => {
      const { runExport } = await import("./export.ts");
      return (app) => runExport(app, options);
    }),
  )
    .option("--day <YYYY-MM-DD...>", "these days in place of the job's window", parseDays)
    .option("--json", "answers in JSON");

  withSelection(
    add("backfill", "reads a range of past days; run again after a stop, it goes on where it was", async (options) => {
      const { runBackfill } = await import("./backfill.ts");
      const { from, to, only } = options;
      return (app) => runBackfill(app, { ...options, from, to, only });
    }),
  )
    .requiredOption("--from <YYYY-MM-DD>", "the first day", parseDay)
    .requiredOption("--to <YYYY-MM-DD>", "the last day, which must be over in UTC", parseDay)
    .addOption(
      new Option("--only <mode>", "which of these days: never read, failed, or all")
        .choices(BACKFILL_MODES)
        .default("missing"),
    )
    .option("--dry-run", "prints what would be read, and calls nothing")
    .option("--enqueue", "leaves the reading to the running workers, and does not wait for it")
    .option("--json", "answers in JSON");

  add("rotate", "runs rotation jobs that are due", async (options) => {
    const { runRotate } = await import("./rotate.ts");
    return (app) => runRotate(app, options);
  })
    .option("--job <name...>", "only these rotations")
    .option("--now", "makes a fresh key, due or not")
    .option("--dry-run", "prints what would be done and why, and calls nothing")
    .option("--rollback", "puts the previous key back")
    .option("--json", "answers in JSON");

  const keys = add("keys", "the ledger of keys: state, age, last seen in use; never a secret", async (options) => {
    const { runKeys } = await import("./keys.ts");
    return (app) => runKeys(app, options);
  }).option("--json", "answers in JSON");
  add(
    "rewrap",
    "seals the ledger's keys with USAGE_EXPORT_MASTER_KEY, opening them with USAGE_EXPORT_MASTER_KEY_PREVIOUS",
    async (options) => {
      const { runRewrap } = await import("./keys.ts");
      return (app) => runRewrap(app, options);
    },
    keys,
  ).option("--json", "answers in JSON");

  add(
    "start",
    "the worker: runs jobs on their schedules, fills what was missed, and drains on SIGTERM",
    async (options) => {
      const { runStart } = await import("./start.ts");
      return (app) => runStart(app, options);
    },
  ).option("--embedded", "works on the embedded database in ./data, where DATABASE_URL is not set");

  add("health", "asks the worker on this machine whether it can work", async (options) => {
    const { runHealth } = await import("./health.ts");
    return (app) => runHealth(app, options);
  }).option("--live", "asks only whether it lives");

  addJobCommands(add);

  add("resume-calls", "ends the pause that the service asked for (Retry-After), for all processes", async (options) => {
    const { runResumeCalls } = await import("./jobs.ts");
    return (app) => runResumeCalls(app, options);
  }).option("--json", "answers in JSON");

  add("status", "jobs, last and next runs, and what is missing", async (options) => {
    const { runStatus } = await import("./status.ts");
    return (app) => runStatus(app, options);
  }).option("--json", "answers in JSON");

  add("report", "usage in charts, and what is missing of it, as one HTML file", async (options) => {
    const { runReport } = await import("./report.ts");
    const { out, from, to } = options;
    return (app) => runReport(app, { out, from, to });
  })
    .option("--out <file>", "the file to write; - writes to standard output", "usage-report.html")
    .option("--from <YYYY-MM-DD>", "the first day; 30 days in all where it is left out", parseDay)
    .option("--to <YYYY-MM-DD>", "the last day; yesterday in UTC where it is left out", parseDay);

  add("dump", "writes a view of schema bi to a file or standard output", async (options) => {
    const { runDump } = await import("./dump.ts");
    const { view, from, to, format, out } = options;
    return (app) => runDump(app, { view, from, to, format, out });
  })
    .requiredOption("--view <name>", "the view, without the schema")
    .option("--from <YYYY-MM-DD>", "the first day; left out: from the oldest day", parseDay)
    .option("--to <YYYY-MM-DD>", "the last day; left out: up to the newest day", parseDay)
    .addOption(
      new Option(
        "--format <name>",
        "csv for spreadsheets, jsonl and parquet for programs; left out: the ending of --out decides",
      ).choices(DUMP_FORMATS),
    )
    .option("--out <file>", "the file to write; - writes to standard output", "-");

  add("schema", "prints the JSON Schema of the configuration", async () => {
    const { runSchema } = await import("./schema.ts");
    return (app) => runSchema(app);
  });

  add("emulator", "serves an emulator of the service on this machine, for trying things out", async (options) => {
    const { runEmulator } = await import("./emulator.ts");
    const { port, dialect, window, seed, project } = options;
    return (app) => runEmulator({ port, dialect, window, seed, project }, app.env, app.write, app.signal);
  })
    .addOption(new Option("--port <number>", "the port; 0 takes a free one").default(0).argParser(parsePort))
    .addOption(
      new Option("--dialect <name>", "the names on the wire").choices(["interface", "2026"]).default("interface"),
    )
    .addOption(
      new Option("--window <mode>", "how the emulator treats start and end, and which days its answer names")
        .choices(["on", "ignored", "undated", "unnamed", "cumulative"])
        .default("on"),
    )
    .option("--project <id>", "the project's id", "trial")
    .addOption(new Option("--seed <number>", "the usage to make up").default(1).argParser(parseWhole));

  return program;
}

// The commands about jobs: list them, see when they run, pause and resume them.

function addJobCommands(add: AddCommand): void {
  const jobs = add("jobs", "the jobs, when they run next, and which are paused", async (options) => {
    const { runJobs } = await import("./jobs.ts");
    return (app) => runJobs(app, options);
  }).option("--json", "answers in JSON");
  const addJob = (name: string, summary: string, load: LoadCommand) =>
    add(name, summary, load, jobs)
      .argument("<name>", "the job's name")
      .addOption(new Option("--kind <kind>", "where both have the name").choices(["export", "rotation"]))
      .option("--json", "answers in JSON");
  addJob("next", "the next times the job runs", async (options, [name = ""]) => {
    const { runJobsNext } = await import("./jobs.ts");
    const { kind, json, count } = options;
    return (app) => runJobsNext(app, name, { kind, json, count });
  }).addOption(new Option("--count <number>", "how many").default(5).argParser(parseCount));
  addJob("pause", "the workers leave the job alone until it is resumed", async (options, [name = ""]) => {
    const { runJobsPause } = await import("./jobs.ts");
    const { kind, json, why } = options;
    return (app) => runJobsPause(app, name, { kind, json, why });
  }).requiredOption("--why <reason>", "what the others should know", parseReason);
  addJob("resume", "the workers run the job again, and catch up what was due", async (options, [name = ""]) => {
    const { runJobsResume } = await import("./jobs.ts");
    const { kind, json } = options;
    return (app) => runJobsResume(app, name, { kind, json });
  });
}

// Reads the values of options. What is wrong with one is said in the words the command line adds it to.

function parseDay(text: string): string {
  if (!isDay(text)) throw new InvalidArgumentError("expected a day that exists, as YYYY-MM-DD.");
  return text;
}

function parseDays(text: string, days: readonly string[] | undefined): readonly string[] {
  return [...(days ?? []), parseDay(text)];
}

function parsePort(text: string): number {
  const port = parseWhole(text);
  if (port > 65_535) throw new InvalidArgumentError("expected a port from 0 to 65535.");
  return port;
}

function parseCount(text: string): number {
  const count = parseWhole(text);
  if (count < 1 || count > 1000) throw new InvalidArgumentError("expected a whole number from 1 to 1000.");
  return count;
}

function parseReason(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("expected a reason.");
  return text.trim();
}

function parseWhole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("expected a whole number.");
  return Number(text);
}
