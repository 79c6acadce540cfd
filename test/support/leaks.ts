// Looks for secrets wherever a run of the program may have left one. Called at the end of every whole-program test.

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { constants, gunzipSync } from "node:zlib";
import pg from "pg";
import { findSecrets } from "./leak-search.ts";
import { readServerLog } from "./server-log.ts";

const PASSWORD_LENGTH_MIN = 8;

export type Places = {
  /** What the program wrote, by name: its outputs, a page it served. */
  readonly texts?: Readonly<Record<string, string>>;
  /** A database of the test server. Its tables, the running statements and the server's log about it are searched. */
  readonly databaseUrl?: string;
  /** False: the server's log is not searched, because it is long. */
  readonly serverLog?: boolean;
  /** False: the command lines of the machine's processes are not searched. */
  readonly commandLines?: boolean;
  /** All files below these folders. */
  readonly folders?: readonly string[];
  /** Requests that a service received. Only their authorization header may contain a key. */
  readonly requests?: readonly ReceivedRequest[];
  /** The environment of these processes must have no secret. */
  readonly processes?: readonly number[];
  /** Files that may contain a secret. */
  readonly allowedFiles?: readonly string[];
};

type ReceivedRequest = {
  readonly target: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
};

export type Leak = { readonly place: string; readonly secret: string; readonly encoding: string };

/** The password in an address, if it is long enough not to be found by chance. */
export function passwordsIn(url: string): readonly string[] {
  const password = decodeURIComponent(new URL(url).password);
  return password.length >= PASSWORD_LENGTH_MIN ? [password] : [];
}

type Artefact = { readonly place: string; readonly text: string };

/** Finds secrets in the places, in any common encoding. 16 consecutive characters of one are enough. */
export async function findLeaks(secrets: readonly string[], places: Places): Promise<readonly Leak[]> {
  const { texts = {}, databaseUrl, serverLog = true, folders = [], allowedFiles = [] } = places;
  const { requests = [], processes = [], commandLines = true } = places;
  const artefacts: Artefact[] = [
    ...Object.entries(texts).map(([place, text]) => ({ place, text })),
    ...(databaseUrl === undefined ? [] : await databaseArtefacts(databaseUrl, serverLog)),
    ...(await fileArtefacts(folders, allowedFiles)),
    ...requests.map(requestArtefact),
    ...(await Promise.all(processes.map(environmentArtefact))),
    ...(commandLines ? await commandLineArtefacts() : []),
  ];
  return artefacts.flatMap(({ place, text }) => findSecrets(text, secrets).map((found) => ({ place, ...found })));
}

const RUNNING = "running statements";

async function databaseArtefacts(url: string, serverLog: boolean): Promise<Artefact[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(`
      select format('%I.%I', nspname, relname) as name
      from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where relkind in ('r', 'm') and nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
    `);
    const sources = [
      { place: RUNNING, query: "query as text from pg_stat_activity" },
      ...tables.map(({ name }) => ({ place: `table ${name}`, query: `t::text from ${name} t` })),
    ];
    // One statement for all, as a round trip for each table takes most of the time.
    const statement = sources.map(({ place, query }) => `select ${pg.escapeLiteral(place)} as place, ${query}`);
    const { rows } = await client.query<{ place: string; text: string | null }>(statement.join("\nunion all\n"));
    const texts = Map.groupBy(rows, ({ place }) => place);
    const artefacts = sources.map(({ place }) => ({
      place,
      text: (texts.get(place) ?? []).map(({ text }) => text ?? "").join("\n"),
    }));
    const log = serverLog ? await readServerLog(client) : undefined;
    return log === undefined ? artefacts : [...artefacts, { place: "server log", text: log }];
  } finally {
    await client.end();
  }
}

async function fileArtefacts(folders: readonly string[], allowed: readonly string[]): Promise<Artefact[]> {
  const artefacts: Artefact[] = [];
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const file = path.join(entry.parentPath, entry.name);
      if (!entry.isFile() || allowed.includes(file)) continue;
      artefacts.push({ place: file, text: `${file}\n${unpack(await readFile(file)).toString("latin1")}` });
    }
  }
  return artefacts;
}

/** Decompresses gzip, which is recognised by content, because the file may have any name. A truncated file is read up to its end. */
function unpack(bytes: Buffer): Buffer {
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return isGzip ? unpack(gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH })) : bytes;
}

function requestArtefact({ target, headers: { authorization: _, ...headers }, body }: ReceivedRequest): Artefact {
  return { place: "a request outside its authorization", text: `${target}\n${JSON.stringify(headers)}\n${body}` };
}

async function environmentArtefact(pid: number): Promise<Artefact> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  return { place: `environment of process ${pid}`, text: environment.replaceAll("\0", "\n") };
}

/** Returns an empty list if the system has no /proc. */
async function commandLineArtefacts(): Promise<Artefact[]> {
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  return Promise.all(
    pids.map(async (pid) => {
      // A process may end at any moment.
      const commandLine = await readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "");
      return { place: `command line of process ${pid}`, text: commandLine.replaceAll("\0", " ") };
    }),
  );
}
