import { expect, test } from "vitest";
import {
  masterKeysUsed,
  replaceSealed,
  rotationsWithKey,
  sealedKey,
  sealedWithOthers,
  usableKeys,
} from "../../../src/db/keys/keystore.ts";
import { testDatabase } from "../../support/database.ts";
import { newIntent, newRotation } from "./written-ledger.ts";

const { db } = await testDatabase();

test("the key in use comes first, then the ones before it, the newest first", async () => {
  const { job, key } = await newRotation(db);
  const intents = [newIntent(), newIntent(), newIntent()];
  for (const intentId of intents) await key(intentId, "active");
  const keys = await usableKeys(db, job.name, job.project.id);
  expect(keys.map(({ intentId }) => intentId)).toEqual(intents.toReversed());
});

test("a key that was put back comes first", async () => {
  const { job, key, write } = await newRotation(db);
  const [first, second] = [newIntent(), newIntent()];
  await key(first, "active");
  await key(second, "active");
  await write({ kind: "active", intentId: first, putBack: true });
  const keys = await usableKeys(db, job.name, job.project.id);
  expect(keys.map(({ intentId }) => intentId)).toEqual([first, second]);
});

test("the key in use comes first also when the clock has gone back", async () => {
  const { job, key } = await newRotation(db);
  const [first, second] = [newIntent(), newIntent()];
  await key(first, "active");
  await key(second, "active");
  const change = { active_since: new Date(Date.now() + 60_000) };
  await db.updateTable("usage_export.api_key").set(change).where("intent_id", "=", first).execute();
  const keys = await usableKeys(db, job.name, job.project.id);
  expect(keys.map(({ intentId }) => intentId)).toEqual([second, first]);
});

test("a key on its way is not used, nor one that was abandoned on it", async () => {
  const { job, key, write } = await newRotation(db);
  const abandoned = newIntent();
  await key(abandoned, "verified");
  await write({ kind: "abandoned", intentId: abandoned });
  await key(newIntent(), "verified");
  expect(await usableKeys(db, job.name, job.project.id)).toEqual([]);
});

test("a retired key is not used", async () => {
  const { job, key, write } = await newRotation(db);
  const intentId = newIntent();
  await key(intentId, "draining");
  await write({ kind: "retired", intentId });
  const keys = await usableKeys(db, job.name, job.project.id);
  expect(keys.map((each) => each.intentId)).toEqual([`${intentId}-successor`]);
});

test("the keys of another project are not used", async () => {
  const { job, key } = await newRotation(db);
  await key(newIntent(), "active");
  expect(await usableKeys(db, job.name, "project-2")).toEqual([]);
});

test("a key's sealed text is found by its intent, while there is one", async () => {
  const { key } = await newRotation(db);
  const intentId = newIntent();
  await key(intentId, "intent");
  expect(await sealedKey(db, intentId)).toBeUndefined();
  const other = await newRotation(db);
  const storedId = newIntent();
  await other.key(storedId, "stored");
  expect(await sealedKey(db, storedId)).toEqual({
    intentId: storedId,
    rotation: other.job.name,
    apiKeyId: `id-of-${storedId}`,
    sealed: expect.stringMatching(/^eyJ/),
    masterKey: "master-1",
  });
});

test("a rotation has a key as soon as one is in use", async () => {
  const { job, key } = await newRotation(db);
  const intentId = newIntent();
  await key(intentId, "verified");
  expect(await rotationsWithKey(db)).not.toContain(job.name);
  const other = await newRotation(db);
  await other.key(newIntent(), "active");
  expect(await rotationsWithKey(db)).toContain(other.job.name);
});

test("what is sealed with another master key is found and replaced once, with an event", async () => {
  const { job, key } = await newRotation(db);
  const intentId = newIntent();
  await key(intentId, "active");
  const found = (await sealedWithOthers(db, "master-2")).find((each) => each.intentId === intentId);
  if (!found) throw new Error("the key was not found");
  expect(found).toMatchObject({ rotation: job.name, masterKey: "master-1" });

  for (const sealed of ["sealed anew", "sealed by another process that read the same"]) {
    await replaceSealed(db, found, { sealed, masterKey: "master-2", actor: "the test" });
  }
  expect(await sealedKey(db, intentId)).toMatchObject({ sealed: "sealed anew" });
  expect(await masterKeysUsed(db)).toContain("master-2");
  expect((await sealedWithOthers(db, "master-2")).map((each) => each.intentId)).not.toContain(intentId);
  const events = await db
    .selectFrom("usage_export.key_event")
    .select(["actor", "reason"])
    .where("intent_id", "=", intentId)
    .where("event", "=", "rewrapped")
    .execute();
  expect(events).toEqual([{ actor: "the test", reason: "sealed with the master key master-2, before with master-1" }]);
});
