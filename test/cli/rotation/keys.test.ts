import { expect } from "vitest";
import { ageKeys, events, ledgerRows, rotationTest, sinkSecret } from "./rotation-context.ts";

const test = await rotationTest();

test("every key has a line, the newest first, with its id, state, age and comment", async ({ context }) => {
  expect(await context.run(["keys"])).toMatchObject({ status: 0, stdout: "no key was made yet\n" });
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
  expect((await context.run(["keys", "rewrap"], both)).stdout).toBe("0 keys sealed with the current master key\n");
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
