// The examples that `--help` shows for each command. Pure.

/** By the command's words. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  demo: ["demo", "demo --serve"],
  check: ["check", "check --offline --config staging.config.json"],
  migrate: ["migrate"],
  start: ["start", "start --embedded"],
  export: ["export", "export --job nightly --project production --day 2026-03-01 2026-03-02"],
  backfill: [
    "backfill --from 2026-01-01 --to 2026-01-31 --dry-run",
    "backfill --from 2026-01-01 --to 2026-01-31",
    "backfill --from 2026-01-01 --to 2026-01-31 --only failed --grouping model",
  ],
  rotate: ["rotate --dry-run", "rotate --job exporter --now", "rotate --job exporter --rollback"],
  keys: ["keys", "keys --json"],
  "keys rewrap": ["keys rewrap"],
  jobs: ["jobs"],
  "jobs next": ["jobs next nightly --count 10"],
  "jobs pause": ['jobs pause nightly --why "the service is moved until Monday"'],
  "jobs resume": ["jobs resume nightly"],
  health: ["health", "health --live"],
  "resume-calls": ["resume-calls"],
  status: ["status", "status --json"],
  report: ["report", "report --from 2026-01-01 --to 2026-01-31 --out january.html"],
  dump: [
    "dump --view usage_by_model --out usage.csv",
    "dump --view usage_total --from 2026-01-01 --to 2026-01-31 --out january.parquet",
    "dump --view coverage_gaps --format jsonl",
  ],
  schema: ["schema"],
  emulator: ["emulator --port 8080 --project trial"],
};

export function examplesText(command: string): string {
  const examples = EXAMPLES[command] ?? [];
  if (examples.length === 0) return "";
  return ["\nExamples:", ...examples.map((example) => `  usage-export ${example}`)].join("\n");
}
