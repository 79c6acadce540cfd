import { statSync } from "node:fs";
import { expect } from "vitest";
import { ageKeys, createdKeys, events, ledgerRows, rotationTest, sinkSecret } from "./rotation-context.ts";

const test = await rotationTest();

test("the first rotation makes a key, verifies it, delivers it and makes it active", async ({ context }) => {
  const { status, stdout } = await context.run(["rotate"]);
  const [id = ""] = createdKeys(context);
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
  expect(context.emulator.secretWorks(sinkSecret(context) ?? "")).toBe(true);
  expect(statSync(context.sink).mode & 0o777).toBe(0o600);
  const rows = await ledgerRows(context.db);
  expect(rows).toMatchObject([{ api_key_id: id, state: "active", step: null }]);
  expect(context.proxy.creates).toEqual([
    { comment: `usage exporter [${rows[0]?.intent_id}]`, scopes: ["member"], tags: ["usage-exporter"] },
  ]);
  expect(await events(context.db)).toEqual(["intent", "stored", "verified", "delivered", "active"]);
});

test("a key that is not due stays, and the service is asked only whether it works", async ({ context }) => {
  await context.prepare();
  const before = context.emulator.requests.length;
  const { status, stdout } = await context.run(["rotate"]);
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: "exporter\n  the active key is 0 days old; due in 30 days\n",
  });
  const [id] = createdKeys(context);
  expect(context.emulator.requests.slice(before)).toMatchObject([
    { method: "GET", path: "/v1/auth/token", keyId: id, status: 200 },
    { method: "GET", path: expect.stringContaining("/usage/breakdown"), keyId: id, status: 200 },
  ]);
});

test("a key that is due creates its successor, and still works", async ({ context }) => {
  await context.prepare();
  const [old] = createdKeys(context);
  const oldSecret = sinkSecret(context) ?? "";
  await ageKeys(context.db, 30);
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "draining" }, { state: "active" }]);
  expect(sinkSecret(context)).not.toBe(oldSecret);
  expect(context.emulator.secretWorks(oldSecret)).toBe(true);
  const posts = context.emulator.requests.filter(({ method }) => method === "POST");
  expect(posts.at(-1)?.keyId).toBe(old);
});

test("--dry-run says what would be done and why, and does nothing", async ({ context }) => {
  const { status, stdout } = await context.run(["rotate", "--dry-run"]);
  expect({ status, stdout }).toEqual({ status: 0, stdout: "exporter\n  would create: there is no active key\n" });
  const json = await context.run(["rotate", "--dry-run", "--json"]);
  expect(JSON.parse(json.stdout)).toEqual([
    { rotation: "exporter", status: "ok", did: ["would create: there is no active key"], kept: [], errors: [] },
  ]);
  expect(context.emulator.requests).toEqual([]);
  expect(await ledgerRows(context.db)).toEqual([]);
});

test("--dry-run takes --now and --rollback into account", async ({ context }) => {
  await context.prepare();
  await context.prepare({ now: true });
  const [row] = await ledgerRows(context.db);
  expect((await context.run(["rotate", "--dry-run", "--now"])).stdout).toContain(
    "would create: a fresh key was asked for",
  );
  expect((await context.run(["rotate", "--dry-run", "--rollback"])).stdout).toContain(
    `would rollback ${row?.api_key_id}`,
  );
});

test("--json has what was done", async ({ context }) => {
  const { stdout } = await context.run(["rotate", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject([
    {
      rotation: "exporter",
      status: "ok",
      did: expect.arrayContaining([expect.stringMatching(/^promote /)]),
      errors: [],
    },
  ]);
});

test("a self-hosted key is made with its two products and without tags", async ({ context }) => {
  const scopes = ["member", "self-hosted:products"];
  await context.configure({ scopes });
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.proxy.creates).toEqual([{ comment: expect.any(String), scopes }]);
  const rows = await context.db.selectFrom("usage_export.api_key").select("scopes_granted").execute();
  expect(rows).toEqual([{ scopes_granted: ["member", "self-hosted:product:api", "self-hosted:product:engine"] }]);
});

test("a self-hosted key that may do nothing else is verified as well", async ({ context }) => {
  const project = { id: "project-1", name: "production", key: { env: "USAGE_EXPORT_KEY" } };
  await context.configure(
    { scopes: ["self-hosted:product:api", "self-hosted:product:engine"] },
    { projects: [project] },
  );
  expect((await context.run(["rotate"])).status).toBe(0);
  const [id] = createdKeys(context);
  expect(context.emulator.requests.filter(({ keyId }) => keyId === id).map(({ path }) => path)).toEqual([
    "/v1/auth/token",
  ]);
});

test("a key that is to expire is requested with its time to live", async ({ context }) => {
  await context.configure({ expiresInDays: 40 });
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.proxy.creates).toMatchObject([{ time_to_live_in_seconds: 40 * 24 * 60 * 60 }]);
  expect(context.proxy.creates[0]).not.toHaveProperty("expiration_date");
  const row = await context.db.selectFrom("usage_export.api_key").select("expires_at").executeTakeFirst();
  const ends =
    context.emulator
      .keys()
      .find(({ origin }) => origin === "created")
      ?.expiresAt?.getTime() ?? 0;
  const known = row?.expires_at?.getTime() ?? 0;
  expect(ends - known).toBeGreaterThanOrEqual(0);
  expect(ends - known).toBeLessThan(60_000);
});

test("rotations are run one after the other, and one that fails does not stop the next", async ({ context }) => {
  const common = { schedule: "0 4 * * *", project: "production", comment: "exporter" };
  const broken = { ...common, name: "broken", scopes: ["member"], deliver: [{ file: context.folder }] };
  const rotations = [broken, { ...common, name: "exporter", scopes: ["member"], deliver: [{ file: context.sink }] }];
  await context.configure({}, { rotations });
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toMatch(
    /^broken\n {2}failed: the key file .* can't be written: it is not a file\nexporter\n {2}create:/,
  );
  expect((await context.run(["rotate", "--job", "exporter"])).status).toBe(0);
});
