// The test function of whole-program tests: each test gets a work folder, an API key of its own and an empty database. After the test
// its programs are ended, and its key must not be found in its outputs and files, and after a file's first test not anywhere.

import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { test as base, expect, type TestAPI } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { needsProcess, runCommand } from "../support/command.ts";
import { logStatements } from "../support/database.ts";
import { type Emulator, type EmulatorOptions, startEmulator } from "../support/emulator.ts";
import { findLeaks, type Places } from "../support/leaks.ts";
import { type Program, type ProgramOptions, type ProgramResult, startProgram } from "../support/program.ts";
import { forgetServerLog } from "../support/server-log.ts";

export const PROJECT_ID = "project-1";

/** Undefined removes a variable from the environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

export type ProgramContext = {
  /** The working directory of the program, with its jobs.config.json. */
  readonly folder: string;
  /** The key of the project; the program finds it in USAGE_EXPORT_KEY. */
  readonly key: string;
  /** Starts the emulator with the console key `key`, of a member unless it has other scopes, and the console keys of the options. */
  readonly serve: (options?: Partial<EmulatorOptions> & { scopes?: readonly string[] }) => Promise<Emulator>;
  /** Writes the configuration; a text is written unchanged. */
  readonly configure: (config: unknown) => Promise<void>;
  /** Runs a command in this process where that makes no difference. Its output is not a file, and no signal reaches it. */
  readonly run: (args: readonly string[], env?: Environment) => Promise<ProgramResult>;
  /** Starts the program as users do. */
  readonly start: (
    args: readonly string[],
    env?: Environment,
    how?: Pick<ProgramOptions, "pidNamespace" | "timeoutMs">,
  ) => Program;
  /** Makes another secret that must not be found after the test, except in the named file of the folder. */
  readonly newSecret: (fileName?: string) => string;
};

type TestDatabase = { readonly db: Database; readonly url: string };

/** Called at the top of a test file. Without a database the program gets the address of one that does not exist. */
export function programTest(database?: TestDatabase): TestAPI<{ context: ProgramContext }> {
  return base.extend<{ context: ProgramContext }>({
    context: async ({ onTestFinished }, use) => {
      if (database) await prepareDatabase(database);
      const { context, close } = await openProgramContext(database?.url);
      onTestFinished(close);
      await use(context);
    },
  });
}

const ROOT = path.join(import.meta.dirname, "../..");
const NO_DATABASE = "postgres://nobody@127.0.0.1:1/nothing";

async function openProgramContext(databaseUrl: string | undefined) {
  const opened = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-test-"));
  opened.defer(() => rm(folder, { recursive: true }));

  const secrets: string[] = [];
  const allowedFiles: string[] = [];
  const newSecret = (fileName?: string) => {
    if (fileName !== undefined) allowedFiles.push(path.join(folder, fileName));
    const secret = randomBytes(20).toString("hex");
    secrets.push(secret);
    return secret;
  };
  const key = newSecret();
  const programs = opened.use(
    openPrograms(folder, { DATABASE_URL: databaseUrl ?? NO_DATABASE, USAGE_EXPORT_KEY: key }),
  );

  const context: ProgramContext = {
    folder,
    key,
    newSecret,
    start: programs.start,
    run: programs.run,
    configure: (config) =>
      writeFile(path.join(folder, "jobs.config.json"), typeof config === "string" ? config : JSON.stringify(config)),
    async serve({ scopes = ["member"], consoleKeys = [], ...options } = {}) {
      const first = { secret: key, projectId: PROJECT_ID, scopes };
      return opened.use(await startEmulator({ ...options, consoleKeys: [first, ...consoleKeys] }));
    },
  };
  return { context, close };

  async function close(): Promise<void> {
    await using _ = opened;
    const output = await programs.end();
    const places = { texts: { output }, folders: [folder], allowedFiles };
    expect(await findLeaks(secrets, { ...places, ...otherPlaces(databaseUrl) })).toEqual([]);
    forgetServerLog();
  }
}

/** The last file that searched everywhere. */
let searchedBy: string | undefined;
const isFirstOfFile = () => expect.getState().testPath !== searchedBy;

/** To search the tables, the server's log and all processes takes longer than most tests, so the first of a file stands for all. */
export function otherPlaces(databaseUrl: string | undefined): Pick<Places, "databaseUrl" | "commandLines"> {
  if (!isFirstOfFile()) return { commandLines: false };
  searchedBy = expect.getState().testPath;
  return databaseUrl === undefined ? {} : { databaseUrl };
}

/** Runs the program in a folder, with this environment and what a test changes of it. */
export function openPrograms(folder: string, all: Environment, limit: Pick<ProgramOptions, "timeoutMs"> = {}) {
  const programs: Program[] = [];
  const results: Promise<ProgramResult>[] = [];
  const environment = (changes?: Environment): Readonly<Record<string, string>> => {
    const entries = Object.entries({ ...all, ...changes });
    return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  };
  const start: ProgramContext["start"] = (args, changes, how = {}) => {
    const program = startProgram(args, { ...limit, ...how, env: environment(changes), cwd: folder });
    programs.push(program);
    results.push(program.ended);
    return program;
  };
  const run: ProgramContext["run"] = (args, changes) => {
    const env = environment(changes);
    if (needsProcess(args, env)) return start(args, changes).ended;
    const result = runCommand(args, { env, cwd: folder });
    results.push(result);
    return result;
  };
  /** Everything that was written, once all has ended. */
  const output = async () => {
    const outputs = await Promise.allSettled(results);
    const textOf = ({ stdout, stderr }: ProgramResult) => stdout + stderr;
    return outputs.map((one) => (one.status === "fulfilled" ? textOf(one.value) : String(one.reason))).join("\n");
  };
  const end = async () => {
    for (const program of programs) await program[Symbol.asyncDispose]();
    process.chdir(ROOT);
    return output();
  };
  return { start, run, output, end, [Symbol.asyncDispose]: async () => void (await end()) };
}

/** The database whose statements are logged now. */
let loggedUrl: string | undefined;

export async function prepareDatabase({ db, url }: TestDatabase): Promise<void> {
  await emptyTables(db);
  const isLogged = isFirstOfFile();
  if (isLogged === (url === loggedUrl)) return;
  loggedUrl = isLogged ? url : undefined;
  await logStatements(url, isLogged);
}

/** The tests of a file use the same database, one after the other. To truncate so many tables takes a second on a busy machine. */
async function emptyTables(db: Database): Promise<void> {
  await sql`
    do $$
    declare
      name text;
    begin
      -- No trigger and no foreign key is checked.
      perform set_config('session_replication_role', 'replica', true);
      for name in
        select format('%I.%I', schemaname, tablename) from pg_tables
        where schemaname = 'usage_export' and tablename <> 'schema_version'
          or schemaname = 'usage_export_queue' and tablename = 'job'
      loop
        execute 'delete from ' || name;
      end loop;
    end $$
  `.execute(db);
}
