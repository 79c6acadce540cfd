// Puts secrets into every place where a run of the program may leave one, in every encoding. The search for leaks must find all of
// them.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { sql } from "kysely";
import pg from "pg";
import { expect, onTestFinished } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { ENCODINGS } from "./encodings.ts";
import { type AskedRequest, findLeaks, type Places } from "./leaks.ts";

export type PlantingGround = { readonly db: Database; readonly url: string; readonly folder: string };

export type Planted = { readonly places: Places; readonly place: RegExp };
type Plant = (texts: readonly string[]) => Promise<Planted>;

const TEXTS = [
  "standard output",
  "the log",
  "a scrape of metrics",
  "a health page",
  "the dashboard",
  "a report",
  "a dump as CSV",
  "a dump as JSON lines",
  "a notice",
];

/** For each place, by name, a function that puts texts there. Databases, folders and processes are removed after the test. */
export function plants({ db, url, folder }: PlantingGround): Readonly<Record<string, Plant>> {
  return {
    ...Object.fromEntries(
      TEXTS.map((name): [string, Plant] => [
        name,
        async (texts) => ({ places: { texts: { [name]: texts.join("\n") } }, place: new RegExp(`^${name}$`) }),
      ]),
    ),
    "a request's path": async (texts) => asked({ target: `/v1/projects?${texts.join("&")}`, headers: {}, body: "" }),
    "a request's header": async (texts) => asked({ target: "/", headers: { "x-trace": [...texts] }, body: "" }),
    "a request's body": async (texts) => asked({ target: "/", headers: {}, body: texts.join("\n") }),
    "an environment": async (texts) => {
      const env = Object.fromEntries(texts.map((text, i) => [`PLANTED_${i}`, text]));
      const child = await sleeper([], { ...process.env, ...env });
      return { places: { processes: [child] }, place: new RegExp(`^environment of process ${child}$`) };
    },
    "a diagnostic report": async (texts) =>
      inFile(folder, "report.20260101.1.json", JSON.stringify({ environmentVariables: { KEYS: texts } })),
    "a text column": async (texts) => {
      await sql`create table public.leak_text (value text)`.execute(db);
      await sql`insert into public.leak_text select unnest(${texts}::text[])`.execute(db);
      return { places: { databaseUrl: url }, place: /^table public.leak_text$/ };
    },
    "a jsonb column of another schema": async (texts) => {
      await sql`create schema "Leaky"`.execute(db);
      await sql`create table "Leaky"."Json" (value jsonb)`.execute(db);
      await sql`insert into "Leaky"."Json" values (${JSON.stringify({ deep: [texts] })})`.execute(db);
      return { places: { databaseUrl: url }, place: /^table "Leaky"."Json"$/ };
    },
    "a materialized view of bytes": async (texts) => {
      const bytes = Buffer.from(texts.join("\n")).toString("hex");
      await sql`create materialized view leak_bytes as select ${sql.lit(`\\x${bytes}`)}::bytea as value`.execute(db);
      return { places: { databaseUrl: url }, place: /^table public.leak_bytes$/ };
    },
    "a running statement": async (texts) => {
      for (const text of texts) await keepSession(url, `select ${pg.escapeLiteral(text)}`);
      return { places: { databaseUrl: url }, place: /^running statements$/ };
    },
    "a parameter in the server's log": async (texts) => {
      await sql`select ${texts}::text[]`.execute(db);
      return { places: { databaseUrl: url }, place: /^server log$/ };
    },
    "an error in the server's log": async (texts) => {
      await expect(sql`select ${texts.join("\n")}::int`.execute(db)).rejects.toMatchObject({ code: "22P02" });
      return { places: { databaseUrl: url }, place: /^server log$/ };
    },
    "a file": async (texts) => inFile(folder, "report.html", texts.join("\n")),
    "a hidden file in a folder": async (texts) => inFile(folder, "deep/.hidden/state", texts.join("\n")),
    "a packed file": async (texts) => inFile(folder, "dump.bin", gzipSync(texts.join("\n"))),
    "a packed file that was cut off": async (texts) =>
      inFile(
        folder,
        "cut.gz",
        gzipSync(`${texts.join("\n")}${randomBytes(10_000).toString("hex")}`).subarray(0, -4_000),
      ),
    "a command line": async (texts) => {
      const child = await sleeper(texts, process.env);
      return { places: {}, place: new RegExp(`^command line of process ${child}$`) };
    },
  };
}

function asked(request: AskedRequest): Planted {
  return { places: { requests: [request] }, place: /^a request outside its authorization$/ };
}

/** Starts a process that runs until the end of the test, and returns its id. */
async function sleeper(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()", ...args], { stdio: "pipe", env });
  onTestFinished(async () => {
    child.stdin.end();
    await once(child, "close");
  });
  await once(child, "spawn");
  if (child.pid === undefined) throw new Error("the process has no id");
  return child.pid;
}

/** No sixteen consecutive characters of the secret stay the same in any encoding other than the plain ones. */
export function newSecret(): string {
  return Array.from({ length: 6 }, () => `k${randomBytes(3).toString("hex")}<S&`).join("");
}

export async function inFile(folder: string, name: string, content: string | Buffer): Promise<Planted> {
  const file = path.join(folder, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, content);
  return { places: { folders: [folder] }, place: new RegExp(`/${name}$`) };
}

async function keepSession(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(statement);
}

/** Plants a secret for each encoding in that place, and returns the encodings in which it was not found. */
export async function missedEncodings(plant: Plant): Promise<readonly string[]> {
  const secrets = Object.keys(ENCODINGS).map(newSecret);
  const planted = await plant(Object.values(ENCODINGS).map((encode, i) => encode(secrets[i] ?? "")));
  const leaks = await findLeaks(secrets, planted.places);
  const found = new Set(leaks.filter((leak) => planted.place.test(leak.place)).map((leak) => leak.secret));
  return Object.keys(ENCODINGS).filter((_, i) => !found.has(secrets[i] ?? ""));
}
