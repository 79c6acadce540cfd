// The test function of whole-program tests. Each test gets a work folder, an API key of its own and an empty database. After the test
// its programs are ended, and their outputs and its folder are searched for its secrets. After the first test of a file, the database, the
// server's log and the command lines of all processes are searched as well.

import { randomBytes } from "node:crypto";
import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { test as base, expect, type TestAPI } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { needsProcess, startCommand } from "../support/command.ts";
import { logStatements, testDatabase } from "../support/database.ts";
import { type EmulatorOptions, startEmulator } from "../support/emulator.ts";
import { findLeaks, type Places } from "../support/leaks.ts";
import { type Program, type ProgramOptions, type ProgramResult, startProgram } from "../support/program.ts";
import { forgetServerLog } from "../support/server-log.ts";
import { type ConfigPart, PROJECT_ID, workerConfig } from "./small-config.ts";

/** Undefined removes a variable from the environment. */
export type Environment = Readonly<Record<string, string | undefined>>;
/** `scopes` are the scopes of the test's own key. */
type ServeOptions = Partial<EmulatorOptions> & { readonly scopes?: readonly string[] };

export type ProgramContext = Awaited<ReturnType<typeof openProgramContext>>;

type TestDatabase = { readonly db: Database; readonly url: string };

/** Called at the top of a test file. Returns its test function and its database, which is empty when a test begins. */
export async function databaseTest() {
  const database = await testDatabase();
  return { ...database, test: programTest(database) };
}

/** Without a database the program gets the address of one that does not exist. */
export function programTest(database?: TestDatabase): TestAPI<{ context: ProgramContext }> {
  return base.extend<{ context: ProgramContext }>({
    context: async ({ onTestFinished }, use) => {
      if (database) await prepareDatabase(database);
      const context = await openProgramContext({ DATABASE_URL: database?.url ?? NO_DATABASE });
      onTestFinished(() => closeAndExpectNoLeaks(context, database?.url));
      await use(context);
    },
  });
}

const NO_DATABASE = "postgres://nobody@127.0.0.1:1/nothing";

export async function openProgramContext(env: Environment, limit: Pick<ProgramOptions, "timeoutMs"> = {}) {
  const opened = new AsyncDisposableStack();
  /** The working directory of the program, with its jobs.config.json. */
  const { path: folder } = opened.use(await mkdtempDisposable(path.join(tmpdir(), "usage-export-test-")));
  /** What must not be found after the test. */
  const secrets: string[] = [];
  /** The files that may contain a secret. */
  const allowedFiles: string[] = [];
  /** Makes another secret that must not be found after the test, except in this file of the folder. */
  const newSecret = ({ allowedIn }: { readonly allowedIn?: string } = {}) => {
    if (allowedIn !== undefined) allowedFiles.push(path.join(folder, allowedIn));
    const secret = randomBytes(20).toString("hex");
    secrets.push(secret);
    return secret;
  };
  /** The key of the project; the program finds it in USAGE_EXPORT_KEY. */
  const key = newSecret();
  const { output, ...programs } = openPrograms(folder, { USAGE_EXPORT_KEY: key, ...env }, limit);
  opened.defer(programs.end);
  /** Starts an emulator that knows `key`, by default with the scope of a member, and the console keys in the options. */
  const serve = async ({ scopes = ["member"], consoleKeys = [], ...options }: ServeOptions = {}) => {
    const ownKey = { secret: key, projectId: PROJECT_ID, scopes };
    return opened.use(await startEmulator({ ...options, consoleKeys: [ownKey, ...consoleKeys] }));
  };
  const configure = (config: object) => writeFile(path.join(folder, "jobs.config.json"), JSON.stringify(config));
  return {
    ...{ ...programs, folder, key, newSecret, secrets, allowedFiles, serve, configure },
    /** Starts the emulator, and writes a configuration of jobs that call it, with the monitor on a free port. */
    async setUp(part: ConfigPart = {}, options: ServeOptions = {}) {
      const emulator = await serve(options);
      await configure(workerConfig(emulator.url, part));
      return emulator;
    },
    leaks: async (where: Pick<Places, "serverLog" | "databaseUrl" | "commandLines">) =>
      findLeaks(secrets, { texts: { output: await output() }, ...where, folders: [folder], allowedFiles }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The test file whose first test has searched everywhere. */
let searchedBy: string | undefined;
const isFirstTestOfFile = () => expect.getState().testPath !== searchedBy;

/** Searching the tables, the server's log and all processes takes longer than most tests, so only a file's first test does it. */
export async function closeAndExpectNoLeaks(
  context: Pick<ProgramContext, "end" | "leaks" | typeof Symbol.asyncDispose>,
  databaseUrl: string | undefined,
): Promise<void> {
  await using _ = context;
  await context.end();
  const everywhere = { commandLines: true, ...(databaseUrl !== undefined && { databaseUrl, serverLog: true }) };
  const places = isFirstTestOfFile() ? everywhere : { commandLines: false };
  searchedBy = expect.getState().testPath;
  expect(await context.leaks(places)).toEqual([]);
  forgetServerLog();
}

const ROOT = path.join(import.meta.dirname, "../..");

/** Functions that run the program in a folder with these variables, which a test may change for a single run. */
function openPrograms(folder: string, variables: Environment, limit: Pick<ProgramOptions, "timeoutMs">) {
  const programs: Program[] = [];
  const keep = (program: Program) => {
    programs.push(program);
    return program;
  };
  const environment = (changes?: Environment): Readonly<Record<string, string>> => {
    const entries = Object.entries({ ...variables, ...changes });
    return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  };
  /** Starts the program as users do. */
  const start = (args: readonly string[], changes?: Environment) =>
    keep(startProgram(args, { ...limit, env: environment(changes), cwd: folder }));
  const startHere = (args: readonly string[], env: ProgramOptions["env"]) =>
    keep(startCommand(args, { env, cwd: folder }));
  /** Runs a command, if possible in this process. A test that sends it a signal, or gives it a file for its output, needs `start`. */
  const run = (args: readonly string[], changes?: Environment): Promise<ProgramResult> => {
    const env = environment(changes);
    return needsProcess(args, env) ? start(args, changes).ended : startHere(args, env).ended;
  };
  /** Runs a worker in this process, until it is stopped or the test ends. */
  const work = (changes?: Environment) => startHere(["start"], environment(changes));
  /** What all programs have written, once the last one has ended. */
  const output = async () => {
    const outputs = await Promise.allSettled(programs.map(({ ended }) => ended));
    const textOf = ({ stdout, stderr }: ProgramResult) => stdout + stderr;
    return outputs.map((one) => (one.status === "fulfilled" ? textOf(one.value) : String(one.reason))).join("\n");
  };
  const end = async () => {
    await Promise.all(programs.map((program) => program[Symbol.asyncDispose]()));
    // A command that ran in this process has left it in `folder`, which is removed next.
    process.chdir(ROOT);
  };
  return { start, run, work, output, end };
}

/** The database whose statements are logged now. */
let loggedUrl: string | undefined;

export async function prepareDatabase({ db, url }: TestDatabase): Promise<void> {
  await emptyTables(db);
  // The server's log is searched only after the first test of a file.
  const mustLog = isFirstTestOfFile();
  const isLogged = url === loggedUrl;
  if (mustLog === isLogged) return;
  loggedUrl = mustLog ? url : undefined;
  await logStatements(url, mustLog);
}

/** The tests of a file use the same database, one after the other. Truncating so many tables would take a second on a busy machine. */
async function emptyTables(db: Database): Promise<void> {
  await sql`
    do $$
    declare
      name text;
    begin
      -- Turns off triggers and foreign keys, so that the order of the tables does not matter.
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
