import { sql } from "kysely";
import { expect, test } from "vitest";
import {
  replaceSealed,
  rotationsWithKey,
  sealedKey,
  sealedWithOthers,
  usableKeys,
} from "../../../src/db/keys/sealed-keys.ts";
import { testDatabase } from "../../support/database.ts";
import { newIntent, newRotation } from "./written-ledger.ts";

const { db, read } = await testDatabase();

test("usableKeys returns the active key first, then the replaced ones, the newest first", async () => {
  const { job, key } = await newRotation(db);
  const intents = [newIntent(), newIntent(), newIntent()];
  for (const intentId of intents) await key(intentId, "active");
  const keys = await usableKeys(db, job.name, job.project.id);
  expect(keys.map(({ intentId }) => intentId)).toEqual(intents.toReversed());
});

test("usableKeys leaves out pending, abandoned and retired keys, and those of another project", async () => {
  const { job, key, write } = await newRotation(db);
  const [abandoned, retired] = [newIntent(), newIntent()];
  await key(abandoned, "verified");
  await write({ kind: "abandoned", intentId: abandoned });
  await key(retired, "draining");
  await write({ kind: "retired", intentId: retired });
  await key(newIntent(), "verified");
  const keys = await usableKeys(db, job.name, job.project.id);
  expect(keys.map(({ intentId }) => intentId)).toEqual([`${retired}-successor`]);
  expect(await usableKeys(db, job.name, "project-2")).toEqual([]);
});

test("rotationsWithKey contains a rotation once it has an active key", async () => {
  const { job, key } = await newRotation(db);
  const intentId = newIntent();
  await key(intentId, "verified");
  expect(await rotationsWithKey(db)).not.toContain(job.name);
  const other = await newRotation(db);
  await other.key(newIntent(), "active");
  expect(await rotationsWithKey(db)).toContain(other.job.name);
});

test("a key that is sealed with another master key is found and sealed anew once, with an event", async () => {
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
  expect((await sealedWithOthers(db, "master-2")).map((each) => each.intentId)).not.toContain(intentId);
  const events = await read(sql`
    select actor, reason from usage_export.key_event where intent_id = ${intentId} and event = 'rewrapped'
  `);
  expect(events).toEqual([{ actor: "the test", reason: "sealed with the master key master-2, before with master-1" }]);
});
