// The test function of rotations: each test gets a service with one key from the console, an empty database, a folder with a
// sink, and the program to run on them. After the test no secret may be anywhere but in the sinks.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, test as base } from "vitest";
import { type Database, openPostgres } from "../../../src/db/connection/database.ts";
import { type DecideFault, PASS } from "../../faults/fault-decision.ts";
import { startServiceFront } from "../../faults/service-front.ts";
import { copyDatabase, testDatabase } from "../../support/database.ts";
import type { EmulatorOptions } from "../../support/emulator.ts";
import { passwordsIn } from "../../support/leaks.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { closeAndExpectNoLeaks, openProgramContext, prepareDatabase } from "../program-context.ts";
import { PRODUCTION, PROJECT_ID, smallConfig } from "../small-config.ts";

const ROTATION_NAME = "exporter";
/** The name of the program that calls the proxy, unless a test gives another. */
export const PROGRAM = "program";

type Fields = Readonly<Record<string, unknown>>;

export type RotationContext = Awaited<ReturnType<typeof openRotationContext>>;

export type RotationOptions = {
  readonly scopes?: readonly string[];
  /** The scopes of a second key from the console, which the program finds in USAGE_EXPORT_CREATOR_KEY. */
  readonly creatorScopes?: readonly string[];
  readonly emulator?: Partial<EmulatorOptions>;
  readonly decideFault?: DecideFault;
  /** Puts a proxy (front) between the program and its database, and returns the proxy's URL. */
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
    onTestFinished(() => closeAndExpectNoLeaks(context, database.url));
    return context;
  });
}

/** The tests of a file use the same database, one after the other. */
let databaseOfFile: ReturnType<typeof testDatabase> | undefined;

/** Without `database`, the context has a database of its own. */
export async function openRotationContext(
  options: RotationOptions = {},
  database?: { readonly db: Database; readonly url: string },
) {
  const opened = new AsyncDisposableStack();
  const databaseUrl = database?.url ?? opened.use(await copyDatabase()).url;
  const db = database?.db ?? openPostgres(databaseUrl);
  if (!database) opened.defer(() => db.destroy());
  const newMasterKey = () => randomBytes(32).toString("base64");
  const [masterKey, creatorKey] = [newMasterKey(), randomBytes(20).toString("hex")];
  const { databaseVia, timeoutMs } = options;
  const env = {
    DATABASE_URL: databaseVia ? opened.use(await databaseVia(databaseUrl)).url : databaseUrl,
    USAGE_EXPORT_MASTER_KEY: masterKey,
    USAGE_EXPORT_CREATOR_KEY: creatorKey,
  };
  const program = opened.use(await openProgramContext(env, timeoutMs === undefined ? {} : { timeoutMs }));
  const { secrets, allowedFiles } = program;
  secrets.push(masterKey, creatorKey, ...passwordsIn(databaseUrl));
  const emulator = await program.serve({
    ...options.emulator,
    scopes: options.scopes ?? ["member"],
    consoleKeys: [
      ...(options.creatorScopes ? [{ secret: creatorKey, projectId: PROJECT_ID, scopes: options.creatorScopes }] : []),
      ...(options.emulator?.consoleKeys ?? []),
    ],
  });
  const proxy = opened.use(await startHttpProxy(emulator.url, options.decideFault ?? (() => PASS), secrets));
  const sink = path.join(program.folder, "exporter.key");
  allowedFiles.push(sink);
  const configure = (rotation: Fields = {}, rest: Fields = {}) =>
    program.configure(rotationConfig(proxy.urlOf(PROGRAM), { deliver: [{ file: sink }], ...rotation }, rest));
  await configure();
  const sinkSecret = () => (existsSync(sink) ? readFileSync(sink, "utf8").trim() : "");
  return {
    ...program,
    ...{ db, databaseUrl, emulator, proxy, masterKey, configure },
    /** The file that the rotation delivers to. */
    sink,
    newMasterKey() {
      const key = newMasterKey();
      secrets.push(key);
      return key;
    },
    /** Rotates, or throws. The fault harness rotates in several cases at once, so that the working directory can't be relied on. */
    async rotateOrThrow(...args: readonly string[]) {
      const config = path.join(program.folder, "jobs.config.json");
      const { status, stdout } = await program.run(["rotate", "--config", config, ...args], {
        DATABASE_URL: databaseUrl,
      });
      if (status !== 0) throw new Error(`the rotation before the test ended with ${status}: ${stdout}`);
    },
    /** The key in the sink; empty while there is none. */
    sinkSecret,
    sinkKeyWorks: () => emulator.secretWorks(sinkSecret()),
    /** The ids of the keys that were created and still work. */
    createdKeys: () =>
      emulator.keys().flatMap((key) => (key.origin === "created" && key.state === "active" ? key.apiKeyId : [])),
    ageKeys: (days: number) => ageStoredData(db, days, ["api_key"]),
    ledgerRows: () => ledgerRows(db),
    states: async () => (await ledgerRows(db)).map(({ state }) => state),
    events: async () => (await keyEvents(db)).map(({ event }) => event),
    /** Deletes a key as a person does in the service's console. */
    async deleteKey(apiKeyId = "") {
      const url = `${emulator.url}/v1/projects/${PROJECT_ID}/keys/${apiKeyId}`;
      const { status } = await fetch(url, { method: "DELETE", headers: { authorization: `Token ${program.key}` } });
      if (status !== 200) throw new Error(`the key ${apiKeyId} could not be deleted: ${status}`);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The fields that every rotation needs besides its name. */
export const ROTATION = { schedule: "0 4 * * *", project: "production", comment: "usage exporter", scopes: ["member"] };

/** A configuration with one project, whose key comes from the rotation ROTATION_NAME. */
function rotationConfig(baseUrl: string, rotation: Fields, rest: Fields): Fields {
  const key = { rotation: ROTATION_NAME, first: { env: "USAGE_EXPORT_KEY" } };
  return smallConfig(baseUrl, {
    projects: [{ ...PRODUCTION, key }],
    rotations: [{ ...ROTATION, name: ROTATION_NAME, tags: ["usage-exporter"], ...rotation }],
    ...rest,
  });
}

/** Starts a proxy for the service. It records the bodies of all creates, even if they do not arrive, and adds new secrets to `secrets`. */
async function startHttpProxy(targetUrl: string, decideFault: DecideFault, secrets: string[]) {
  const proxy = {
    creates: [] as { readonly comment: string }[],
    /** If set, a create is answered with 502 and this text, as by a gateway that quotes the new key. */
    quote: undefined as ((secret: string) => string) | undefined,
  };
  const front = await startServiceFront(targetUrl, {
    decideFault,
    whoAsks: (request) => {
      const [, who = "", url = ""] = /^\/([^/]+)(.*)$/.exec(request.url ?? "") ?? [];
      return { who, url };
    },
    watch: ({ method, body }) => {
      if (method === "POST") proxy.creates.push(JSON.parse(body.toString()));
      return {
        answered: (answer) => {
          if (method !== "POST") return answer;
          const newSecrets = [...answer.body.toString().matchAll(/"key":"([^"]+)"/g)].map(([, secret = ""]) => secret);
          secrets.push(...newSecrets);
          const quoted = newSecrets.map((secret) => proxy.quote?.(secret)).at(0);
          if (quoted === undefined) return answer;
          return { ...answer, status: 502, body: Buffer.from(JSON.stringify({ error: quoted, message: quoted })) };
        },
      };
    },
  });
  /** Each program may call it by an address of its own, so that `decideFault` knows which program calls. */
  const urlOf = (who: string) => `${front.url}/${who}`;
  return Object.assign(proxy, { urlOf, [Symbol.asyncDispose]: () => front[Symbol.asyncDispose]() });
}

/** Makes `count` keys, one after the other, and returns their secrets. */
export async function makeKeys(context: RotationContext, count: number): Promise<readonly string[]> {
  const secrets: string[] = [];
  for (let i = 0; i < count; i++) {
    await context.rotateOrThrow("--now");
    secrets.push(context.sinkSecret());
  }
  return secrets;
}

/** All keys, the oldest first, including retired ones. */
export async function ledgerRows(db: Database) {
  return db
    .selectFrom("usage_export.api_key")
    .select(["intent_id", "api_key_id", "state", "step", "note"])
    .orderBy("requested_at")
    .execute();
}

export async function keyEvents(db: Database) {
  return db.selectFrom("usage_export.key_event").select(["intent_id", "event"]).orderBy("event_id").execute();
}
