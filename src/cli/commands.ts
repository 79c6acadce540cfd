// Which commands there are, with their options and examples. A command's own module is loaded when the command runs, so that no
// command waits for the modules of another. --help loads none of them.

import { Argument, InvalidArgumentError, Option, type OptionValues } from "commander";
import type { App } from "../app.ts";
import { BACKFILL_MODES } from "../usage/backfill.ts";
import { isDay } from "../usage/days.ts";
import { type Dialect, USAGE_DIMENSIONS } from "../usage/dimensions.ts";
import { METRICS } from "../usage/metrics.ts";
import { GROUPINGS, type Grouping, groupingBy } from "../usage/series.ts";
import type { DumpOptions } from "./dump.ts";
import type { EmulatorOptions } from "./emulator.ts";
import type { ExplainOptions } from "./explain.ts";
import type { JobsNextOptions, JobsPauseOptions } from "./jobs.ts";
import type { ReportOptions } from "./report.ts";
import type { BackfillOptions } from "./selection.ts";

type CommandDefinition = {
  /** For a subcommand, both words, such as "jobs pause". */
  readonly name: string;
  readonly summary: string;
  readonly examples: readonly string[];
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  /** Returns the exit status. */
  readonly run: (app: App, options: OptionValues, args: readonly string[]) => Promise<number>;
};

const JSON_ANSWER = new Option("--json", "answers in JSON");

const SELECTION = [
  new Option("--job <name...>", "only these jobs"),
  new Option("--project <name...>", "only these projects"),
  new Option("--grouping <name...>", "only these groupings; of several dimensions, as tags,line_item").argParser(
    parseGroupings,
  ),
  new Option("--filter <name...>", "only these filters"),
];

const JOB_NAME = new Argument("<name>", "the job's name");
/** In the order of --help. A subcommand follows its command. */
export const COMMANDS: readonly CommandDefinition[] = [
  {
    name: "demo",
    summary: "the whole product on this machine with nothing configured: emulator, embedded database, 30 days",
    examples: ["demo", "demo --serve"],
    options: [new Option("--serve", "keeps the dashboard up until Ctrl-C")],
    run: async (app, options) => (await import("./demo.ts")).runDemo(app, options),
  },
  {
    name: "init",
    summary: "asks for a configuration, tries each answer with the service, and writes jobs.config.json",
    examples: ["init", "init --yes --project 2ad1bd12-6e1c-4b7a-9b4f-3a1a0f5b3c9e --grouping none model"],
    options: [
      new Option("--base-url <address>", "the service's address"),
      new Option("--key-variable <name>", "the environment variable that holds the API key"),
      new Option("--project <id>", "the project's id; left out: the only one of the key"),
      new Option("--grouping <name...>", "the groupings to read").choices(GROUPINGS),
      new Option("--days <number>", "how many days to read again each night").argParser(
        wholeNumber("a number of days from 1 to 366", 366),
      ),
      new Option("--yes", "asks nothing: takes these options, and defaults for the others"),
    ],
    run: async (app, options) => (await import("./init.ts")).runInit(app, options),
  },
  {
    name: "check",
    summary:
      "checks the configuration, the database and, per project, the key and whether the service applies window, groupings and filters",
    examples: ["check", "check --offline --config staging.config.json"],
    options: [
      new Option("--offline", "stops after the configuration"),
      new Option(
        "--confirm-projects",
        "stores the lists of projects as they are now, also if more than half of a list is missing",
      ),
      JSON_ANSWER,
    ],
    run: async (app, options) => (await import("./check.ts")).runCheck(app, options),
  },
  {
    name: "migrate",
    summary: "brings the database up to date; safe from several replicas at once",
    examples: ["migrate"],
    options: [JSON_ANSWER],
    run: async (app, options) => (await import("./migrate.ts")).runMigrate(app, options),
  },
  {
    name: "export",
    summary: "runs export jobs now",
    examples: ["export", "export --job nightly --project production --day 2026-03-01 2026-03-02"],
    options: [
      ...SELECTION,
      new Option("--day <YYYY-MM-DD...>", "these days in place of the job's window").argParser(parseDays),
      JSON_ANSWER,
    ],
    run: async (app, options) => (await import("./export.ts")).runExport(app, options),
  },
  {
    name: "backfill",
    summary: "reads a range of past days; run again after a stop, it continues where it ended",
    examples: [
      "backfill --from 2026-01-01 --to 2026-01-31 --dry-run",
      "backfill --from 2026-01-01 --to 2026-01-31",
      "backfill --from 2026-01-01 --to 2026-01-31 --only failed --grouping model",
    ],
    options: [
      ...SELECTION,
      dayOption("--from", "the first day").makeOptionMandatory(),
      dayOption("--to", "the last day, which must be over in UTC").makeOptionMandatory(),
      new Option("--only <mode>", "which of these days: never read, failed, or all")
        .choices(BACKFILL_MODES)
        .default("missing"),
      new Option("--dry-run", "prints what would be read and how long it takes, and calls nothing"),
      JSON_ANSWER,
    ],
    run: async (app, options) => (await import("./backfill.ts")).runBackfill(app, options as BackfillOptions),
  },
  {
    name: "rotate",
    summary: "runs rotation jobs that are due",
    examples: ["rotate --dry-run", "rotate --job exporter --now", "rotate --job exporter --rollback"],
    options: [
      new Option("--job <name...>", "only these rotations"),
      new Option("--project <name...>", "only the keys of these projects, by name or id"),
      new Option("--now", "makes a fresh key, due or not"),
      new Option("--dry-run", "prints what would be done and why, and calls nothing"),
      new Option("--rollback", "puts the previous key back"),
      JSON_ANSWER,
    ],
    run: async (app, options) => (await import("./rotate.ts")).runRotate(app, options),
  },
  {
    name: "keys",
    summary: "the ledger of keys: state, age, last seen in use; never a secret",
    examples: ["keys", "keys --job exporter --project production", "keys --json"],
    options: [
      new Option("--job <name...>", "only the keys of these rotations"),
      new Option("--project <name...>", "only the keys of these projects, by name or id"),
      JSON_ANSWER,
    ],
    run: async (app, options) => (await import("./keys.ts")).runKeys(app, options),
  },
  {
    name: "keys rewrap",
    summary: "seals the ledger's keys with USAGE_EXPORT_MASTER_KEY, opening them with USAGE_EXPORT_MASTER_KEY_PREVIOUS",
    examples: ["keys rewrap"],
    options: [JSON_ANSWER],
    run: async (app, options) => (await import("./rewrap.ts")).runRewrap(app, options),
  },
  {
    name: "start",
    summary: "the worker: runs jobs on their schedules, fills what was missed, and drains on SIGTERM",
    examples: ["start", "start --embedded"],
    options: [new Option("--embedded", "works on the embedded database in ./data, where DATABASE_URL is not set")],
    run: async (app, options) => (await import("./start.ts")).runStart(app, options),
  },
  {
    name: "health",
    summary: "asks the worker on this machine whether it can work",
    examples: ["health", "health --live"],
    options: [new Option("--live", "asks only whether its process is alive")],
    run: async (app, options) => (await import("./health.ts")).runHealth(app, options),
  },
  {
    name: "jobs",
    summary: "the jobs, when they run next, and which are paused",
    examples: ["jobs"],
    options: [JSON_ANSWER],
    run: async (app, options) => (await import("./jobs.ts")).runJobs(app, options),
  },
  {
    name: "jobs next",
    summary: "the next times the job runs",
    examples: ["jobs next nightly --count 10"],
    arguments: [JOB_NAME],
    options: [
      JSON_ANSWER,
      new Option("--count <number>", "how many")
        .default(5)
        .argParser(wholeNumber("a whole number from 1 to 1000", 1000, 1)),
    ],
    run: async (app, options, [name = ""]) =>
      (await import("./jobs.ts")).runJobsNext(app, name, options as JobsNextOptions),
  },
  {
    name: "jobs pause",
    summary: "the workers leave the job alone until it is resumed",
    examples: ['jobs pause nightly --why "the service is moved until Monday"'],
    arguments: [JOB_NAME],
    options: [
      JSON_ANSWER,
      new Option("--why <reason>", "what the others should know").argParser(parseReason).makeOptionMandatory(),
    ],
    run: async (app, options, [name = ""]) =>
      (await import("./jobs.ts")).runJobsPause(app, name, options as JobsPauseOptions),
  },
  {
    name: "jobs resume",
    summary: "the workers run the job again, and catch up what was due",
    examples: ["jobs resume nightly"],
    arguments: [JOB_NAME],
    options: [JSON_ANSWER],
    run: async (app, options, [name = ""]) => (await import("./jobs.ts")).runJobsResume(app, name, options),
  },
  {
    name: "status",
    summary: "jobs, last and next runs, and what is missing",
    examples: ["status", "status --json", 'status --project "prod-*"'],
    options: [
      new Option("--project <name...>", 'only how complete these projects are; "*" stands for any text'),
      JSON_ANSWER,
    ],
    run: async (app, options) => (await import("./status.ts")).runStatus(app, options),
  },
  {
    name: "report",
    summary: "the overview as one HTML file to send on",
    examples: ["report", "report --from 2026-01-01 --to 2026-01-31 --out january.html"],
    options: [
      new Option("--out <file>", "the file to write; - writes to standard output").default("usage-report.html"),
      dayOption("--from", "the first day; 28 days in all where it is left out"),
      dayOption("--to", "the last day; yesterday in UTC where it is left out"),
      new Option("--project <name>", "only this project"),
      new Option("--weekly", "prints the last 7 days in some sentences, as notify.report sends them"),
    ],
    run: async (app, options) => (await import("./report.ts")).runReport(app, options as ReportOptions),
  },
  {
    name: "explain",
    summary: "why usage and cost rose or fell: which models, keys, tags and other groups account for the change",
    examples: [
      "explain",
      "explain --day 2026-03-02 --project production",
      "explain --from 2026-03-01 --to 2026-03-31 --metric hours --limit 10",
    ],
    options: [
      dayOption("--day", "this day, against the same weekday a week before"),
      dayOption(
        "--from",
        "the first day; 7 days in all where it is left out. They are compared with as many days whole weeks before, and a whole calendar month with the month before",
      ),
      dayOption("--to", "the last day; yesterday in UTC where it is left out"),
      new Option("--project <name...>", "only these projects"),
      new Option("--metric <name...>", "these metrics; cost needs billing or prices in the configuration")
        .choices([...METRICS, "cost"])
        .default(["requests", "cost"]),
      new Option("--grouping <name...>", "split by these groupings only").choices(USAGE_DIMENSIONS),
      new Option("--limit <number>", "how many groups each table shows; the others are added up")
        .default(5)
        .argParser(wholeNumber("a whole number from 1 to 1000", 1000, 1)),
      JSON_ANSWER,
    ],
    run: async (app, options) => (await import("./explain.ts")).runExplain(app, options as ExplainOptions),
  },
  {
    name: "dump",
    summary: "writes a view of schema bi to a file or standard output",
    examples: [
      "dump --view usage_by_model --out usage.csv",
      "dump --view coverage_gaps --format jsonl",
      "dump --view usage_by_model --changed-since beginning --out usage.csv",
    ],
    options: [
      new Option("--view <name>", "the view, without the schema").makeOptionMandatory(),
      dayOption("--from", "the first day; left out: from the oldest day"),
      dayOption("--to", "the last day; left out: up to the newest day"),
      new Option(
        "--format <name>",
        "csv for spreadsheets, jsonl for programs; left out: the ending of --out decides",
      ).choices(["csv", "jsonl"]),
      new Option("--out <file>", "the file to write; - writes to standard output").default("-"),
      new Option(
        "--changed-since <moment>",
        "only the days that changed since the moment that the last such dump printed; the first time: beginning",
      ),
    ],
    run: async (app, options) => (await import("./dump.ts")).runDump(app, options as DumpOptions),
  },
  {
    name: "schema",
    summary: "prints the JSON Schema of the configuration",
    examples: ["schema"],
    run: async (app) => {
      app.write(`${JSON.stringify((await import("../config/schema.ts")).configJsonSchema(), null, 2)}\n`);
      return 0;
    },
  },
  {
    name: "emulator",
    summary: "serves an emulator of the service on this machine, for trying things out",
    examples: ["emulator --port 8080 --project trial", "emulator --project berlin paris rome"],
    options: [
      new Option("--port <number>", "the port; 0 takes a free one")
        .default(0)
        .argParser(wholeNumber("a port from 0 to 65535", 65_535)),
      new Option("--dialect <name>", "which parameter and field names: the published interface's, or those of 2026")
        .choices(["interface", "2026"] satisfies readonly Dialect[])
        .default("interface"),
      new Option("--project <id...>", "the projects' ids; the key may use each of them").default(["trial"]),
    ],
    run: async (app, options) => (await import("./emulator.ts")).runEmulator(app, options as EmulatorOptions),
  },
];

// Parses the values of options. Commander puts the message behind "error: option ... argument '...' is invalid.".

function dayOption(flag: string, description: string): Option {
  return new Option(`${flag} <YYYY-MM-DD>`, description).argParser(parseDay);
}

function parseDay(text: string): string {
  if (!isDay(text)) throw new InvalidArgumentError("expected a day that exists, as YYYY-MM-DD.");
  return text;
}

function parseDays(text: string, days: readonly string[] | undefined): readonly string[] {
  return [...(days ?? []), parseDay(text)];
}

function parseGroupings(text: string, groupings: readonly Grouping[] | undefined): readonly Grouping[] {
  const grouping = groupingBy(text.split(","));
  if (grouping !== undefined) return [...(groupings ?? []), grouping];
  const known = [...GROUPINGS, "line_item"];
  throw new InvalidArgumentError(`expected ${known.join(", ")}, or several joined by commas.`);
}

function parseReason(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("expected a reason.");
  return text.trim();
}

function wholeNumber(expected: string, max = 999_999_999, min = 0): (text: string) => number {
  return (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (!(number >= min && number <= max)) throw new InvalidArgumentError(`expected ${expected}.`);
    return number;
  };
}
