// The test function of rotations: each test gets a service with one key from the console, an empty database, a folder with a
// sink, and the program to run on them. After the test no secret may be anywhere but in the sinks.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type RawBuilder, sql } from "kysely";
import { pino } from "pino";
import { afterAll, test as base, expect } from "vitest";
import type { App } from "../../../src/app.ts";
import { type RotateOptions, runRotate } from "../../../src/cli/rotate.ts";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import type { UsageSource } from "../../../src/emulator/usage.ts";
import { Scrubber } from "../../../src/secret.ts";
import { type DecideFault, PASS } from "../../faults/fault-decision.ts";
import { copyDatabase, testDatabase } from "../../support/database.ts";
import { type Emulator, type EmulatorOptions, startEmulator } from "../../support/emulator.ts";
import { findLeaks, type Leak, type Places, passwordsIn } from "../../support/leaks.ts";
import type { Program, ProgramResult } from "../../support/program.ts";
import { forgetServerLog } from "../../support/server-log.ts";
import { type Environment, openPrograms, otherPlaces, prepareDatabase } from "../program-context.ts";
import { type HttpProxy, startHttpProxy } from "./http-proxy.ts";

export const PROJECT_ID = "project-1";
const ROTATION = "exporter";
/** The name of the program that calls the proxy, unless a test gives another. */
export const PROGRAM = "program";

type Fields = Readonly<Record<string, unknown>>;

export type RotationContext = AsyncDisposable & {
  readonly folder: string;
  readonly emulator: Emulator;
  readonly proxy: HttpProxy;
  readonly db: Database;
  readonly databaseUrl: string;
  readonly firstKey: string;
  readonly masterKey: string;
  /** The file that the rotation delivers to. */
  readonly sink: string;
  /** The files that may contain a key. A test adds the others that it makes in the folder. */
  readonly sinks: string[];
  readonly run: (args: readonly string[], env?: Environment) => Promise<ProgramResult>;
  readonly start: (args: readonly string[], env?: Environment) => Program;
  /** Rotates in the test process with an environment of its own, to prepare a state: cases of the fault harness do so at the same time. */
  readonly prepare: (options?: RotateOptions) => Promise<void>;
  readonly configure: (rotation?: Fields, rest?: Fields) => Promise<void>;
  readonly newSecret: () => string;
  readonly newMasterKey: () => string;
  readonly leaks: (where?: Pick<Places, "serverLog" | "databaseUrl" | "commandLines">) => Promise<readonly Leak[]>;
};

export type RotationOptions = {
  readonly scopes?: readonly string[];
  /** The scopes of a second key from the console, which the program finds in USAGE_EXPORT_CREATOR_KEY. */
  readonly creatorScopes?: readonly string[];
  readonly emulator?: Partial<EmulatorOptions>;
  readonly decideFault?: DecideFault;
  /** Puts a front before the program's database, and returns its URL. */
  readonly databaseVia?: (url: string) => Promise<AsyncDisposable & { readonly url: string }>;
  /** A program is killed after this time. */
  readonly timeoutMs?: number;
};

/** Called at the top of a test file. */
export async function rotationTest(options: RotationOptions = {}) {
  databaseOfFile ??= testDatabase();
  const database = await databaseOfFile;
  // The next file may run in the same process.
  afterAll(() => {
    databaseOfFile = undefined;
  });
  return base.extend("context", async ({ onTestFinished }): Promise<RotationContext> => {
    await prepareDatabase(database);
    const context = await openRotationContext(options, database);
    onTestFinished(async () => {
      await using open = context;
      expect(await open.leaks(otherPlaces(open.databaseUrl))).toEqual([]);
      forgetServerLog();
    });
    return context;
  });
}

/** The tests of a file use the same database, one after the other. */
let databaseOfFile: ReturnType<typeof testDatabase> | undefined;

/** Without a database, it gets one of its own. */
export async function openRotationContext(
  options: RotationOptions = {},
  database?: { readonly db: Database; readonly url: string },
): Promise<RotationContext> {
  const opened = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-rotation-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const url = database?.url ?? opened.use(await copyDatabase()).url;
  const db = database?.db ?? openPostgres(url);
  if (!database) opened.defer(() => db.destroy());

  const secrets: string[] = [];
  const newSecret = () => keep(secrets, randomBytes(20).toString("hex"));
  const firstKey = newSecret();
  const newMasterKey = () => keep(secrets, randomBytes(32).toString("base64"));
  const masterKey = newMasterKey();
  const creatorKey = newSecret();
  const consoleKeys = [
    { secret: firstKey, projectId: PROJECT_ID, scopes: options.scopes ?? ["member"] },
    ...(options.creatorScopes ? [{ secret: creatorKey, projectId: PROJECT_ID, scopes: options.creatorScopes }] : []),
  ];
  const emulator = opened.use(await startEmulator({ consoleKeys, ...options.emulator }));
  const proxy = opened.use(await startHttpProxy(emulator.url, options.decideFault ?? (() => PASS)));
  const programUrl = options.databaseVia ? opened.use(await options.databaseVia(url)).url : url;
  const sink = path.join(folder, "exporter.key");
  const sinks = [sink];
  const configPath = path.join(folder, "jobs.config.json");
  const configure: RotationContext["configure"] = (rotation, rest) =>
    writeFile(configPath, JSON.stringify(rotationConfig(proxy.urlOf(PROGRAM), sink, rotation, rest)));
  await configure();

  const baseEnv = {
    DATABASE_URL: programUrl,
    USAGE_EXPORT_KEY: firstKey,
    USAGE_EXPORT_MASTER_KEY: masterKey,
    USAGE_EXPORT_CREATOR_KEY: creatorKey,
  };
  const programs = opened.use(
    openPrograms(folder, baseEnv, options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  );

  return {
    folder,
    emulator,
    proxy,
    db,
    databaseUrl: url,
    firstKey,
    masterKey,
    sink,
    sinks,
    configure,
    newSecret,
    newMasterKey,
    start: programs.start,
    run: programs.run,
    prepare: (rotateOptions = {}) => prepare({ ...baseEnv, DATABASE_URL: url }, configPath, rotateOptions),
    leaks: async (where = { databaseUrl: url }) =>
      findLeaks([...secrets, ...proxy.secrets, ...passwordsIn(url)], {
        texts: { output: await programs.output() },
        ...where,
        folders: [folder],
        allowedFiles: sinks,
      }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function keep(secrets: string[], secret: string): string {
  secrets.push(secret);
  return secret;
}

function rotationConfig(baseUrl: string, sink: string, rotation: Fields = {}, rest: Fields = {}): Fields {
  const key = { rotation: ROTATION, first: { env: "USAGE_EXPORT_KEY" } };
  return {
    // As fast as the program may: there is no real service to be spared.
    service: { baseUrl, dialect: "interface", requestsPerSecond: 100 },
    projects: [{ id: PROJECT_ID, name: "production", key }],
    exports: [
      { name: "nightly", schedule: "15 2 * * *", projects: ["production"], window: { days: 2 }, groupings: ["none"] },
    ],
    rotations: [
      {
        name: ROTATION,
        schedule: "0 4 * * *",
        project: "production",
        comment: "usage exporter",
        scopes: ["member"],
        tags: ["usage-exporter"],
        deliver: [{ file: sink }],
        ...rotation,
      },
    ],
    ...rest,
  };
}

async function prepare(env: Environment, configPath: string, options: RotateOptions): Promise<void> {
  const said: string[] = [];
  const app: App = {
    env,
    configPath,
    signal: new AbortController().signal,
    scrubber: new Scrubber(),
    log: pino({ level: "silent" }),
    actor: "the test",
    write: (text) => void said.push(text),
    terminal: false,
  };
  const status = await runRotate(app, options);
  if (status !== 0) throw new Error(`the rotation to begin with ended with ${status}: ${said.join("")}`);
}

/** The key in the sink; undefined while there is none. */
export function sinkSecret({ sink }: Pick<RotationContext, "sink">): string | undefined {
  try {
    return readFileSync(sink, "utf8").replace(/\n$/, "");
  } catch {
    return undefined;
  }
}

/** Sets back all times of the keys in the ledger by `days` days. */
export async function ageKeys(db: Database, days: number): Promise<void> {
  const shift = (columns: readonly string[]): RawBuilder<unknown> =>
    sql.raw(columns.map((column) => `${column} = ${column} - make_interval(hours => ${24 * days})`).join(", "));
  const columns = [
    "requested_at",
    "created_at",
    "active_since",
    "rollback_at",
    "draining_since",
    "due_for_removal_at",
    "expires_at",
  ];
  await sql`update usage_export.api_key set ${shift(columns)}`.execute(db);
}

export type LedgerRow = {
  readonly intent_id: string;
  readonly api_key_id: string | null;
  readonly state: string;
  readonly step: string | null;
  readonly note: string | null;
};

/** All keys, the oldest first, including retired ones. */
export async function ledgerRows(db: Database): Promise<readonly LedgerRow[]> {
  return db
    .selectFrom("usage_export.api_key")
    .select(["intent_id", "api_key_id", "state", "step", "note"])
    .orderBy("requested_at")
    .execute();
}

export async function events(db: Database): Promise<readonly string[]> {
  return (await keyEvents(db)).map(({ event }) => event);
}

export async function keyEvents(db: Database) {
  return db.selectFrom("usage_export.key_event").select(["intent_id", "event"]).orderBy("event_id").execute();
}

/** The ids of the keys that were created and still work. */
export function createdKeys({ emulator }: Pick<RotationContext, "emulator">): readonly string[] {
  return emulator
    .keys()
    .filter(({ origin, state }) => origin === "created" && state === "active")
    .map(({ apiKeyId }) => apiKeyId);
}

/** Which accessor used something, and how many days ago. */
export type DaysUsage = { readonly accessor: string; readonly daysAgo: number };

export function usageOf(usage: () => readonly DaysUsage[]): UsageSource {
  return (_project, _day, ageDays) =>
    usage()
      .filter(({ daysAgo }) => daysAgo === Math.floor(ageDays))
      .map(({ accessor }) => ({ accessor, requests: 1, hours: 0.5 }));
}
