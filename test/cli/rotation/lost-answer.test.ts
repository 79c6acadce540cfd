// A create whose answer is lost: nobody knows then whether there is a key, and it is never sent again.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Fault } from "../../../src/emulator/faults.ts";
import {
  age,
  createdKeys,
  events,
  ledgerRows,
  type RotationWorld,
  rotationTest,
  sinkSecret,
} from "./rotation-world.ts";

const test = rotationTest();

const HOUR = "interval '61 minutes'";

function failCreates({ emulator }: RotationWorld, fault: Fault): void {
  emulator.fault = ({ method }) => (method === "POST" ? fault : undefined);
}

/** A key in use, which is due. */
async function prepareDue(world: RotationWorld): Promise<string> {
  await world.prepare();
  await age(world.db, 30);
  return sinkSecret(world) ?? "";
}

const without = (field: string): Fault => ({
  kind: "body",
  change: (json) => Object.fromEntries(Object.entries(json).filter(([name]) => name !== field)),
});

test.for<readonly [name: string, fault: Fault, made: number]>([
  ["is lost", { kind: "lose" }, 1],
  ["is cut in the middle", { kind: "cut" }, 1],
  ["has no key", without("key"), 1],
  ["has no id", without("api_key_id"), 1],
  ["has a key with a line break", { kind: "body", change: (json) => ({ ...json, key: `${json.key}\n` }) }, 1],
  ["is an HTML page", { kind: "answer", status: 200, headers: { "content-type": "text/html" }, body: "<html>" }, 0],
  ["is 502 from a gateway", { kind: "answer", status: 502 }, 0],
  ["never comes, as the connection ends before", { kind: "drop" }, 0],
])("an answer that %s leaves an orphan, and the current key in use", async ([, fault, made], { world }) => {
  const before = await prepareDue(world);
  failCreates(world, fault);
  const { status } = await world.run(["rotate"]);
  expect(status).toBe(1);
  expect(world.proxy.creates).toHaveLength(2);
  expect(createdKeys(world)).toHaveLength(1 + made);
  expect(sinkSecret(world)).toBe(before);
  expect(world.emulator.secretWorks(before)).toBe(true);
  const rows = await ledgerRows(world.db);
  expect(rows).toMatchObject([{ state: "active" }, { state: "orphan" }]);
  expect(world.proxy.creates.at(-1)?.comment).toContain(rows[1]?.intent_id);
});

test("the orphan is found by its comment in the same run, and kept where keys are kept", async ({ world }) => {
  await prepareDue(world);
  failCreates(world, { kind: "lose" });
  await world.run(["rotate"]);
  const [, orphan] = await ledgerRows(world.db);
  expect(createdKeys(world)).toContain(orphan?.api_key_id);

  world.emulator.fault = undefined;
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "draining" }, { state: "orphan" }, { state: "active" }]);
  expect((await world.run(["keys"])).stdout).toMatch(/orphan +\S+, 0 days old/);
  expect(createdKeys(world)).toHaveLength(3);
});

test("the words of a gateway that quotes the new key are shown and stored nowhere", async ({ world }) => {
  await prepareDue(world);
  world.proxy.quote = (secret) =>
    `no route for {"key":"${secret}"} or ${Buffer.from(`{"key":"${secret}"}`).toString("base64")}`;
  const { stdout } = await world.run(["rotate"]);
  expect(stdout).toContain("the service answered 502: (its words are not shown, as they may hold a new key)");
  expect((await world.run(["keys"])).stdout).toContain("the service answered 502: (its words are not shown");
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "active" }, { state: "orphan" }]);
});

test("where keys are deleted the orphan is", async ({ world }) => {
  await world.configure({ retire: "delete" });
  await prepareDue(world);
  failCreates(world, { kind: "lose" });
  const { stdout } = await world.run(["rotate"]);
  expect(stdout).toMatch(/search .*\n {2}delete .*: nobody has its secret/);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "active" }, { state: "retired" }]);
  expect(createdKeys(world)).toHaveLength(1);
});

test("an orphan that the service does not list is looked for again, and given up after an hour", async ({ world }) => {
  await prepareDue(world);
  failCreates(world, { kind: "drop" });
  await world.run(["rotate"]);
  world.emulator.fault = undefined;
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await ledgerRows(world.db)).toMatchObject([{}, { state: "orphan", api_key_id: null }, {}]);

  await shift(world, HOUR);
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await ledgerRows(world.db)).toMatchObject([{}, { state: "retired", api_key_id: null }, {}]);
});

test("a list that does not show the key in use is no reason to give an orphan up", async ({ world }) => {
  await prepareDue(world);
  failCreates(world, { kind: "drop" });
  await world.run(["rotate"]);
  await shift(world, HOUR);
  world.emulator.fault = ({ method, path }) =>
    method === "GET" && path.endsWith("/keys") ? { kind: "body", change: () => ({ api_keys: [] }) } : undefined;
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await ledgerRows(world.db)).toMatchObject([{}, { state: "orphan" }, {}]);
});

test("an orphan whose comment has no id is left for a person", async ({ world }) => {
  await world.configure({ commentTemplate: "{comment}", retire: "delete" });
  await prepareDue(world);
  failCreates(world, { kind: "lose" });
  await world.run(["rotate"]);
  await shift(world, HOUR);
  world.emulator.fault = undefined;
  await world.run(["rotate"]);
  expect(await ledgerRows(world.db)).toMatchObject([{}, { state: "orphan", api_key_id: null }, {}]);
  expect((await world.run(["keys"])).stdout).toContain("orphan   (id not known");
});

test("the very first create may be lost as well", async ({ world }) => {
  failCreates(world, { kind: "lose" });
  expect((await world.run(["rotate"])).status).toBe(1);
  world.emulator.fault = undefined;
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.proxy.creates).toHaveLength(2);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "orphan" }, { state: "active" }]);
  expect((await events(world.db)).slice(0, 4)).toEqual(["intent", "orphan", "failed", "found"]);
});

async function shift({ db }: RotationWorld, interval: string): Promise<void> {
  await sql`update usage_export.api_key set requested_at = requested_at - ${sql.raw(interval)} where state = 'orphan'`.execute(
    db,
  );
}
