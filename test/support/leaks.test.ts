// Tests the search for leaked secrets: puts a different secret into each place a run may leave one, in every encoding, and expects the
// search to find them all.

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { afterAll, expect, inject, test } from "vitest";
import { logStatements, testDatabase } from "./database.ts";
import { findLeaks } from "./leaks.ts";
import { inFile, missedEncodings, newSecret, plants } from "./planted-leaks.ts";

const { db, url } = await testDatabase();
const { db: otherDb, url: otherUrl } = await testDatabase();
for (const each of [url, otherUrl]) await logStatements(each, true);
const folder = await mkdtemp(path.join(tmpdir(), "usage-export-leaks-"));
afterAll(() => rm(folder, { recursive: true }));

const PLACES = plants({ db, url, folder });

test.for(Object.entries(PLACES))("a secret in %s is found in every encoding", async ([name, plant], { skip }) => {
  skip(name.includes("server's log") && inject("postgres").logFile === undefined, "the server's log can't be read");
  expect(await missedEncodings(plant)).toEqual([]);
});

test("a secret that was not put anywhere is not found", async () => {
  await inFile(folder, "innocent.txt", "nothing here");
  expect(await findLeaks([newSecret()], { texts: { stdout: "done" }, databaseUrl: url, folders: [folder] })).toEqual(
    [],
  );
});

test("lines of the server's log about another database are not searched", async () => {
  const secret = newSecret();
  await sql`select ${secret}::text`.execute(otherDb);
  expect(await findLeaks([secret], { databaseUrl: url })).toEqual([]);
});

test("a secret in an allowed file is no leak", async () => {
  const secret = newSecret();
  await inFile(folder, "sink.key", secret);
  const allowedFiles = [path.join(folder, "sink.key")];
  expect(await findLeaks([secret], { folders: [folder], allowedFiles })).toEqual([]);
  expect(await findLeaks([secret], { folders: [folder] })).toMatchObject([{ secret, encoding: "plain" }]);
});

test("a secret in the name of a file is found", async () => {
  const secret = `canary${randomBytes(16).toString("hex")}`;
  await inFile(folder, `${secret}.tmp`, "");
  expect(await findLeaks([secret], { folders: [folder] })).toHaveLength(1);
});
