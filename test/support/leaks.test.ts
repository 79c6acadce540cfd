// Plants a secret of its own in every place, in every encoding, and expects all of them to be found: a scanner that
// misses one says nothing about the program.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { sql } from "kysely";
import pg from "pg";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { testDatabase } from "./database.ts";
import { findLeaks, type Places } from "./leaks.ts";

const { db, url } = await testDatabase();
const { db: otherDb } = await testDatabase();
const folder = await mkdtemp(path.join(tmpdir(), "usage-export-leaks-"));
afterAll(() => rm(folder, { recursive: true }));

const each = (secret: string, encode: (code: number) => string) =>
  [...secret].map((character) => encode(character.charCodeAt(0))).join("");
const hex = (code: number, length: number) => code.toString(16).padStart(length, "0");
const base64 = (text: string) => Buffer.from(text).toString("base64");

const ENCODINGS: Readonly<Record<string, (secret: string) => string>> = {
  raw: (secret) => secret,
  "lower case": (secret) => secret.toLowerCase(),
  "upper case": (secret) => secret.toUpperCase(),
  base64,
  "base64 after one character": (secret) => base64(`:${secret}:`),
  "base64 after two characters": (secret) => base64(`u:${secret}`),
  base64url: (secret) => Buffer.from(`user:${secret}`).toString("base64url"),
  hex: (secret) => Buffer.from(secret).toString("hex"),
  "upper case hex": (secret) => Buffer.from(secret).toString("hex").toUpperCase(),
  "a URL component": encodeURIComponent,
  "percent-encoding of all": (secret) => each(secret, (code) => `%${hex(code, 2)}`),
  "JSON escapes": (secret) => each(secret, (code) => `\\u${hex(code, 4)}`),
  "decimal entities": (secret) => each(secret, (code) => `&#${code};`),
  "hexadecimal entities": (secret) => each(secret, (code) => `&#x${hex(code, 2)};`),
  "named entities": (secret) => secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;"),
  "sixteen characters": (secret) => secret.slice(7, 23),
};

type Planted = { readonly places: Places; readonly place: RegExp };
type Plant = (texts: readonly string[]) => Promise<Planted>;

const PLACES: Readonly<Record<string, Plant>> = {
  "an output": async (texts) => ({ places: { texts: { stderr: texts.join("\n") } }, place: /^stderr$/ }),
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
    for (const text of texts) await keepSession(`select ${pg.escapeLiteral(text)}`);
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
  "a file": async (texts) => inFile("report.html", texts.join("\n")),
  "a hidden file in a folder": async (texts) => inFile("deep/.hidden/state", texts.join("\n")),
  "a packed file": async (texts) => inFile("dump.bin", gzipSync(texts.join("\n"))),
  "a packed file that was cut off": async (texts) =>
    inFile("cut.gz", gzipSync(`${texts.join("\n")}${randomBytes(10_000).toString("hex")}`).subarray(0, -4_000)),
  "a command line": async (texts) => {
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()", ...texts], { stdio: "pipe" });
    onTestFinished(async () => {
      child.stdin.end();
      await once(child, "close");
    });
    await once(child, "spawn");
    return { places: {}, place: new RegExp(`^command line of process ${child.pid}$`) };
  },
};

test.for(Object.keys(PLACES))("a secret in %s is found in every encoding", async (name, { skip }) => {
  skip(name.includes("log") && inject("postgres").logFile === undefined, "the server keeps its log to itself");
  const secrets = Object.keys(ENCODINGS).map(newSecret);
  const planted = Object.values(ENCODINGS).map((encode, i) => encode(secrets[i] ?? ""));
  const { places, place } = (await PLACES[name]?.(planted)) ?? { places: {}, place: /$^/ };

  const leaks = await findLeaks(secrets, places);

  const found = new Set(leaks.filter((leak) => place.test(leak.place)).map((leak) => leak.secret));
  const missed = Object.keys(ENCODINGS).filter((_, i) => !found.has(secrets[i] ?? ""));
  expect(missed).toEqual([]);
});

test("a secret that is nowhere is not found anywhere", async () => {
  await inFile("innocent.txt", "nothing here");
  expect(await findLeaks([newSecret()], { texts: { stdout: "done" }, databaseUrl: url, folders: [folder] })).toEqual(
    [],
  );
});

test("what the server's log says about the database of another test file is left to that file", async () => {
  const secret = newSecret();
  await sql`select ${secret}::text`.execute(otherDb);
  expect(await findLeaks([secret], { databaseUrl: url })).toEqual([]);
});

test("a secret in a file that is there for it is no leak", async () => {
  const secret = newSecret();
  await inFile("sink.key", secret);
  const allowedFiles = [path.join(folder, "sink.key")];
  expect(await findLeaks([secret], { folders: [folder], allowedFiles })).toEqual([]);
  expect(await findLeaks([secret], { folders: [folder] })).toMatchObject([{ secret, encoding: "plain" }]);
});

test("a secret in the name of a file is found", async () => {
  const secret = `canary${randomBytes(16).toString("hex")}`;
  await inFile(`${secret}.tmp`, "");
  expect(await findLeaks([secret], { folders: [folder] })).toHaveLength(1);
});

/** No sixteen characters of it stay the same in any encoding but the plain ones. */
function newSecret(): string {
  return Array.from({ length: 6 }, () => `k${randomBytes(3).toString("hex")}<S&`).join("");
}

async function inFile(name: string, content: string | Buffer): Promise<Planted> {
  const file = path.join(folder, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, content);
  return { places: { folders: [folder] }, place: new RegExp(`/${name}$`) };
}

async function keepSession(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(statement);
}
