// What is sent to the server when a transaction begins.

import pg from "pg";
import { afterAll, beforeEach, expect, test } from "vitest";
import { joinBegin } from "../../../src/db/connection/timeouts.ts";
import { testDatabase } from "../../support/database.ts";

const { url } = await testDatabase();
const client = new pg.Client({ connectionString: url });
await client.connect();
await client.query("create table public.note (text text)");
afterAll(() => client.end());

let sent: string[] = [];
const send = joinBegin((text, values) => {
  sent.push(text);
  return client.query(text, [...values]);
});
beforeEach(() => {
  sent = [];
});

async function notes(): Promise<unknown[]> {
  return (await client.query("select text from public.note")).rows;
}

test("a transaction begins in the round trip of its first statement, whose rows are returned", async () => {
  await send("begin", []);
  expect(await send("select 1 as one", [])).toMatchObject({ command: "SELECT", rows: [{ one: 1 }] });
  await send("insert into public.note values ($1)", ["undone"]);
  await send("rollback", []);
  expect(sent).toEqual(["begin; select 1 as one", "insert into public.note values ($1)", "rollback"]);
  expect(await notes()).toEqual([]);
});

test("a transaction whose first statement has parameters begins before it", async () => {
  await send("start transaction isolation level repeatable read read only", []);
  await expect(send("insert into public.note values ($1)", ["refused"])).rejects.toThrow("read-only transaction");
  await send("rollback", []);
  expect(sent).toHaveLength(3);
  expect(await notes()).toEqual([]);
});

test("a transaction whose first statement fails is open until it is rolled back", async () => {
  await send("begin", []);
  await expect(send("select 1 / 0", [])).rejects.toThrow("division by zero");
  await expect(send("insert into public.note values ('late')", [])).rejects.toThrow("transaction is aborted");
  await send("rollback", []);
  expect(await notes()).toEqual([]);
});
