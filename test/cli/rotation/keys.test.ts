import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { ageKeys, type DaysUsage, events, ledgerRows, rotationTest, sinkSecret, usageOf } from "./rotation-context.ts";

const EXPORT = { name: "nightly", schedule: "15 2 * * *", projects: ["production"] };

let usage: readonly DaysUsage[] = [];
const test = await rotationTest({ emulator: { usage: usageOf(() => usage) } });

test("before any key was made, keys says so", async ({ context }) => {
  expect(await context.run(["keys"])).toMatchObject({ status: 0, stdout: "no key was made yet\n" });
  expect(JSON.parse((await context.run(["keys", "--json"])).stdout)).toEqual({ keys: [], rotations: [] });
});

test("every key has a line, the newest first, with its id, state, age and comment", async ({ context }) => {
  await context.prepare();
  await ageKeys(context.db, 30);
  await context.prepare();
  const [old, current] = await ledgerRows(context.db);
  const { status, stdout } = await context.run(["keys"]);
  expect(status).toBe(0);
  expect(stdout.split("\n")).toEqual([
    "exporter",
    `  active   ${current?.api_key_id}, 0 days old, last seen in use unknown, "usage exporter [${current?.intent_id}]"`,
    `  draining ${old?.api_key_id}, 30 days old, last seen in use unknown, "usage exporter [${old?.intent_id}]"`,
    "",
  ]);
});

test("keys --json has the same, and no secret", async ({ context }) => {
  await context.prepare();
  const [row] = await ledgerRows(context.db);
  expect(JSON.parse((await context.run(["keys", "--json"])).stdout)).toMatchObject({
    keys: [{ rotation: "exporter", project: "production", apiKeyId: row?.api_key_id, state: "active", ageDays: 0 }],
    rotations: [
      {
        rotation: "exporter",
        apiKeyId: row?.api_key_id,
        ageDays: 0,
        failedAttempts: 0,
        lastError: null,
        fallback: null,
      },
    ],
  });
});

test("status shows the age of the key in use", async ({ context }) => {
  await context.prepare();
  await context.prepare({ now: true });
  await ageKeys(context.db, 3);
  const [, current] = await ledgerRows(context.db);
  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toContain(`rotation exporter: key ${current?.api_key_id}, 3 days old\n`);
  expect(status).toBe(0);
});

test("keys shows the last day on which a key is in the stored usage", async ({ context }) => {
  await context.prepare();
  await context.configure({}, { exports: [{ ...EXPORT, window: { days: 3 }, groupings: ["accessor"] }] });
  const [row] = await ledgerRows(context.db);
  usage = [{ accessor: row?.api_key_id ?? "", daysAgo: 2 }];
  expect((await context.run(["export"])).status).toBe(0);
  const day = new Date(Date.now() - 2 * 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
  expect((await context.run(["keys"])).stdout).toContain(`last seen in use ${day}`);
});

test("rewrap seals every key with the new master key, while the old one is still given", async ({ context }) => {
  await context.prepare();
  await context.prepare({ now: true });
  const secret = sinkSecret(context);
  const [before] = await sealedTexts();
  const previous = context.masterKey;
  const next = context.newMasterKey();
  const both = { USAGE_EXPORT_MASTER_KEY: next, USAGE_EXPORT_MASTER_KEY_PREVIOUS: previous };

  expect(await context.run(["keys", "rewrap"], both)).toMatchObject({
    status: 0,
    stdout: "2 keys sealed with the current master key\n",
  });
  expect(JSON.parse((await context.run(["keys", "rewrap", "--json"], both)).stdout)).toEqual({ rewrapped: 0 });
  expect((await sealedTexts())[0]).not.toBe(before);
  expect((await events(context.db)).slice(-2)).toEqual(["rewrapped", "rewrapped"]);

  const onlyNext = { USAGE_EXPORT_MASTER_KEY: next };
  expect((await context.run(["rotate", "--rollback"], onlyNext)).status).toBe(0);
  expect((await context.run(["export"], { ...onlyNext, USAGE_EXPORT_KEY: undefined })).status).toBe(0);
  expect(sinkSecret(context)).not.toBe(secret);
  expect((await context.run(["rotate"])).status).toBe(2);

  async function sealedTexts() {
    const rows = await context.db.selectFrom("usage_export.api_key").select("sealed").orderBy("requested_at").execute();
    return rows.map(({ sealed }) => sealed);
  }
});

test("with both master keys a rotation works before the rewrap, and its new key is sealed with the new one", async ({
  context,
}) => {
  await context.prepare();
  const both = { USAGE_EXPORT_MASTER_KEY: context.newMasterKey(), USAGE_EXPORT_MASTER_KEY_PREVIOUS: context.masterKey };
  expect((await context.run(["rotate", "--now"], both)).status).toBe(0);
  const rows = await context.db.selectFrom("usage_export.api_key").select("master_key").execute();
  expect(new Set(rows.map(({ master_key }) => master_key)).size).toBe(2);
});

test("rewrap without the master key that the ledger is sealed with changes nothing", async ({ context }) => {
  await context.prepare();
  const { status, stderr } = await context.run(["keys", "rewrap"], {
    USAGE_EXPORT_MASTER_KEY: randomBytes(32).toString("base64"),
  });
  expect(status).toBe(2);
  expect(stderr).toContain("set USAGE_EXPORT_MASTER_KEY_PREVIOUS to that master key and run: usage-export keys rewrap");
  expect((await context.run(["rotate", "--now"])).status).toBe(0);
});
