// The commands `rotate`, `keys` and `keys rewrap` when nothing goes wrong.

import { statSync } from "node:fs";
import { expect } from "vitest";
import { PRODUCTION } from "../small-config.ts";
import { ROTATION, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();

test("the first rotation makes a key, verifies it, delivers it and makes it active", async ({ context }) => {
  const { status, stdout } = await context.run(["rotate"]);
  const [id = ""] = context.createdKeys();
  expect(stdout.split("\n").map((line) => line.replaceAll(id, "ID"))).toEqual([
    "exporter",
    "  create: there is no active key",
    "  verify ID: the key is stored and was not verified yet",
    "  deliver ID: the key works and not every sink has it",
    "  promote ID: the key works and every sink has it",
    "  the active key is 0 days old; due in 30 days",
    "",
  ]);
  expect(status).toBe(0);
  expect(context.emulator.secretWorks(context.sinkSecret())).toBe(true);
  expect(statSync(context.sink).mode & 0o777).toBe(0o600);
  const rows = await context.ledgerRows();
  expect(rows).toMatchObject([{ api_key_id: id, state: "active", step: null }]);
  expect(context.proxy.creates).toEqual([
    { comment: `usage exporter [${rows[0]?.intent_id}]`, scopes: ["member"], tags: ["usage-exporter"] },
  ]);
  expect(await context.events()).toEqual(["intent", "stored", "verified", "delivered", "active"]);
});

test("a key that is not due is only verified", async ({ context }) => {
  await context.rotateOrThrow();
  const before = context.emulator.requests.length;
  const { status, stdout } = await context.run(["rotate"]);
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: "exporter\n  the active key is 0 days old; due in 30 days\n",
  });
  const [id] = context.createdKeys();
  expect(context.emulator.requests.slice(before)).toMatchObject([
    { method: "GET", path: "/v1/auth/token", keyId: id, status: 200 },
    { method: "GET", path: expect.stringContaining("/usage/breakdown"), keyId: id, status: 200 },
  ]);
});

test("a key that is due creates its successor", async ({ context }) => {
  await context.rotateOrThrow();
  const [old] = context.createdKeys();
  const oldSecret = context.sinkSecret();
  await context.ageKeys(30);
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.states()).toEqual(["draining", "active"]);
  expect(context.sinkSecret()).not.toBe(oldSecret);
  expect(context.emulator.secretWorks(oldSecret)).toBe(true);
  expect(context.emulator.requests.findLast(({ method }) => method === "POST")?.keyId).toBe(old);
});

test("--dry-run only says what would be done and why", async ({ context }) => {
  const dry = (...options: string[]) => context.run(["rotate", "--dry-run", ...options]);
  expect(await dry()).toMatchObject({ status: 0, stdout: "exporter\n  would create: there is no active key\n" });
  expect(JSON.parse((await dry("--json")).stdout)).toEqual([
    { rotation: "exporter", status: "ok", did: ["would create: there is no active key"], kept: [], errors: [] },
  ]);
  expect(context.emulator.requests).toEqual([]);
  expect(await context.ledgerRows()).toEqual([]);
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  const [row] = await context.ledgerRows();
  expect((await dry("--now")).stdout).toContain("would create: a fresh key was asked for");
  expect((await dry("--rollback")).stdout).toContain(`would rollback ${row?.api_key_id}`);
  expect(context.proxy.creates).toHaveLength(2);
});

test("a self-hosted key is made with its two products and without tags", async ({ context }) => {
  const scopes = ["self-hosted:products"];
  await context.configure({ scopes }, { projects: [PRODUCTION] });
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.proxy.creates).toEqual([{ comment: expect.any(String), scopes }]);
  const rows = await context.db.selectFrom("usage_export.api_key").select("scopes_granted").execute();
  expect(rows).toEqual([{ scopes_granted: ["self-hosted:product:api", "self-hosted:product:engine"] }]);
  const [id] = context.createdKeys();
  const calls = context.emulator.requests.filter(({ keyId }) => keyId === id);
  expect(calls.map(({ path }) => path)).toEqual(["/v1/auth/token"]);
});

test("a key that is to expire is requested with its time to live", async ({ context }) => {
  await context.configure({ expiresInDays: 40 });
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.proxy.creates).toMatchObject([{ time_to_live_in_seconds: 40 * 24 * 60 * 60 }]);
  expect(context.proxy.creates[0]).not.toHaveProperty("expiration_date");
});

test("a rotation that fails does not stop the next one", async ({ context }) => {
  const sinks = { broken: context.folder, exporter: context.sink };
  const rotations = Object.entries(sinks).map(([name, file]) => ({ ...ROTATION, name, deliver: [{ file }] }));
  await context.configure({}, { rotations });
  expect(await context.run(["rotate"])).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(
      /^broken\n {2}failed: the key file .* can't be written: it is not a file\nexporter\n {2}create:/,
    ),
  });
  expect(await context.run(["rotate", "--job", "exporter"])).toMatchObject({ status: 0 });
});

test("`keys` has a line for every key, the newest first, with its id, state, age and comment", async ({ context }) => {
  expect(await context.run(["keys"])).toMatchObject({ status: 0, stdout: "no key was made yet\n" });
  await context.rotateOrThrow();
  await context.ageKeys(30);
  await context.rotateOrThrow();
  const [old, current] = await context.ledgerRows();
  const { status, stdout } = await context.run(["keys"]);
  expect(status).toBe(0);
  expect(stdout.split("\n")).toEqual([
    "exporter",
    `  active   ${current?.api_key_id}, 0 days old, last seen in use unknown, "usage exporter [${current?.intent_id}]"`,
    `  draining ${old?.api_key_id}, 30 days old, last seen in use unknown, "usage exporter [${old?.intent_id}]"`,
    "",
  ]);
  const { keys, rotations } = JSON.parse((await context.run(["keys", "--json"])).stdout);
  const active = { rotation: "exporter", apiKeyId: current?.api_key_id, ageDays: 0 };
  expect(keys[0]).toMatchObject({ ...active, project: "production", state: "active" });
  expect(rotations).toMatchObject([{ ...active, failedAttempts: 0, lastError: null, fallback: null }]);
});

test("rewrap seals every key with the new master key, while the old one is still given", async ({ context }) => {
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  const secret = context.sinkSecret();
  const sealed = () =>
    context.db.selectFrom("usage_export.api_key").select("sealed").orderBy("requested_at").executeTakeFirst();
  const before = await sealed();
  const onlyNext = { USAGE_EXPORT_MASTER_KEY: context.newMasterKey() };
  const both = { ...onlyNext, USAGE_EXPORT_MASTER_KEY_PREVIOUS: context.masterKey };
  const rewrapped = (count: number) => ({ status: 0, stdout: `${count} keys sealed with the current master key\n` });
  expect(await context.run(["keys", "rewrap"], both)).toMatchObject(rewrapped(2));
  expect(await context.run(["keys", "rewrap"], both)).toMatchObject(rewrapped(0));
  expect(await sealed()).not.toEqual(before);
  expect((await context.events()).slice(-2)).toEqual(["rewrapped", "rewrapped"]);

  expect(await context.run(["rotate", "--rollback"], onlyNext)).toMatchObject({ status: 0 });
  expect(await context.run(["export"], { ...onlyNext, USAGE_EXPORT_KEY: undefined })).toMatchObject({ status: 0 });
  expect(context.sinkSecret()).not.toBe(secret);
  expect(await context.run(["rotate"])).toMatchObject({ status: 2 });
});
