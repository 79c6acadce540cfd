// The test function of whole-program tests: each test gets a work folder, an API key of its own and an empty database. After the test
// its programs are ended, and its key must not be found anywhere.

import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { test as base, expect, type TestAPI } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { type Emulator, type EmulatorOptions, startEmulator } from "../../src/emulator/server.ts";
import { findLeaks } from "../support/leaks.ts";
import { type Program, type ProgramOptions, type ProgramResult, startProgram } from "../support/program.ts";
import { forgetServerLog } from "../support/server-log.ts";

export const PROJECT_ID = "project-1";

/** Undefined removes a variable from the environment. */
type Environment = Readonly<Record<string, string | undefined>>;

export type ProgramContext = {
  /** The working directory of the program, with its jobs.config.json. */
  readonly folder: string;
  /** The key of the project; the program finds it in USAGE_EXPORT_KEY. */
  readonly key: string;
  /** Starts the emulator with the console key `key`, of a member unless it has other scopes, and the console keys of the options. */
  readonly serve: (options?: Partial<EmulatorOptions> & { scopes?: readonly string[] }) => Promise<Emulator>;
  /** Writes the configuration; a text is written unchanged. */
  readonly configure: (config: unknown) => Promise<void>;
  readonly run: (args: readonly string[], env?: Environment) => Promise<ProgramResult>;
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
      if (database) await emptyTables(database.db);
      const { context, close } = await openProgramContext(database?.url);
      onTestFinished(close);
      await use(context);
    },
  });
}

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
  const programs: Program[] = [];
  const start: ProgramContext["start"] = (args, changes = {}, how = {}) => {
    const all = { DATABASE_URL: databaseUrl ?? NO_DATABASE, USAGE_EXPORT_KEY: key, ...changes };
    const env = Object.fromEntries(
      Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
    const program = startProgram(args, { ...how, env, cwd: folder });
    programs.push(program);
    return program;
  };

  const context: ProgramContext = {
    folder,
    key,
    newSecret,
    start,
    run: (args, env) => start(args, env).ended,
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
    for (const program of programs) await program[Symbol.asyncDispose]();
    const outputs = await Promise.allSettled(programs.map(({ ended }) => ended));
    const texts = outputs.map((output) =>
      output.status === "fulfilled" ? output.value.stdout + output.value.stderr : String(output.reason),
    );
    const places = {
      texts: { output: texts.join("\n") },
      folders: [folder],
      allowedFiles,
      ...(databaseUrl !== undefined && { databaseUrl }),
    };
    expect(await findLeaks(secrets, places)).toEqual([]);
    forgetServerLog();
  }
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
        where schemaname = 'usage_export' and tablename not like 'kysely%' and tablename <> 'view_version'
          or schemaname = 'usage_export_queue' and tablename = 'job'
      loop
        execute 'delete from ' || name;
      end loop;
    end $$
  `.execute(db);
}
