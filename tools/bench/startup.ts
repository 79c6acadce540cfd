// How long commands with little work take from the start of their process to its end, compared with a Node process that does nothing.

import { addDays, dayOf } from "../../src/usage/days.ts";
import { startEmulator } from "../../test/support/emulator.ts";
import { startScript } from "../../test/support/program.ts";
import { openConfigFolder } from "./config-folder.ts";
import { median, type NewDatabase, ratio, secondsOf } from "./figures.ts";
import { configOf, KEY } from "./pipeline.ts";
import { builtProgram, run } from "./processes.ts";

const ROUNDS = 5;
const WORKLOAD = { projects: 1, days: 1, cap: 4 };

type Options = { readonly cwd: string; readonly env: Readonly<Record<string, string>> };

const yesterday = addDays(dayOf(new Date()), -1);

/** The order matters: `migrate` makes the tables that the others need, and `export` the numbers that they read. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  migrate: ["migrate"],
  "export, 4 requests": ["export"],
  "--help": ["--help"],
  schema: ["schema"],
  "check --offline": ["check", "--offline"],
  check: ["check"],
  status: ["status"],
  keys: ["keys"],
  "backfill, nothing to do": ["backfill", "--from", yesterday, "--to", yesterday],
};

export async function measureStartup(newDatabase: NewDatabase): Promise<string[]> {
  await using emulator = await startEmulator({
    consoleKeys: [{ secret: KEY, projectId: "project-0", scopes: ["member"] }],
  });
  await using config = await openConfigFolder({ ...configOf(emulator.url, WORKLOAD), monitor: { port: 0 } });
  const options = { cwd: config.folder, env: { DATABASE_URL: await newDatabase(), LOG_LEVEL: "error", KEY } };
  const program = await builtProgram();
  const ends = (...args: readonly string[]) => secondsOf(() => run(process.execPath, args, options));
  const starts = new Map<string, () => Promise<number>>([
    ["node -e 0", () => ends("-e", "0")],
    ...Object.entries(COMMANDS).map(([what, args]) => [what, () => ends(program, ...args)] as const),
    ["start, until it works", () => secondsUntilItWorks(program, options)],
  ]);
  const seconds = new Map([...starts.keys()].map((what): [string, number[]] => [what, []]));
  // The first round is not counted: it makes the tables and stores the numbers.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [what, start] of starts) {
      const took = await start();
      if (round > 0) seconds.get(what)?.push(took);
    }
  }
  const bare = median(seconds.get("node -e 0") ?? []);
  return [
    "start to end of a process, and ratio to one that does nothing:",
    ...[...seconds].map(
      ([what, took]) =>
        `  ${what.padEnd(26)}${(median(took) * 1_000).toFixed(0).padStart(6)} ms ${ratio(median(took), bare)}`,
    ),
  ];
}

/** The worker is stopped by SIGTERM, so that it leaves no run unfinished. */
async function secondsUntilItWorks(program: string, { cwd, env }: Options): Promise<number> {
  await using worker = startScript(program, ["start"], { cwd, env: { ...env, LOG_LEVEL: "info" } });
  const seconds = await secondsOf(() => worker.waitFor("worker started"));
  worker.kill("SIGTERM");
  await worker.ended;
  return seconds;
}
