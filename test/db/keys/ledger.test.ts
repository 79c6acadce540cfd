// The ledger of keys: what each change stores, and which keys other parts of the program read from it.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import type { RotationConfig } from "../../../src/config/rotations.ts";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { readLedger, replaceSealed } from "../../../src/db/keys/ledger.ts";
import {
  readSealedKey,
  rotationsWithActiveKey,
  sealedWithOtherMasterKey,
  usableKeys,
} from "../../../src/db/keys/sealed-keys.ts";
import { readKeys } from "../../../src/facts/keys.ts";
import type { LedgerKey } from "../../../src/keys/rotation-plan.ts";
import { copyDatabase, testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { type KeyState, newIntent, newKey, newRotation, type Writer } from "./written-ledger.ts";

const { db, read } = await testDatabase();

const ledgerOf = async ({ job }: Writer) => (await readLedger(db, job)).ledger;

/** A rotation of the project production with a new key in this state. Secrets are sealed with master-1. */
async function rotationWith(as: KeyState, fields: Partial<RotationConfig> = {}) {
  const rotation = await newRotation(db, fields);
  const intentId = newIntent();
  await rotation.recordKey(intentId, as);
  return { rotation, intentId };
}

async function keyOf(rotation: Writer, intentId: string): Promise<LedgerKey | undefined> {
  return (await ledgerOf(rotation)).keys.find((key) => key.intentId === intentId);
}

async function rowOf(intentId: string) {
  return db.selectFrom("usage_export.api_key").selectAll().where("intent_id", "=", intentId).executeTakeFirst();
}

const eventsOf = ({ job }: Writer) =>
  read(sql<{ event: string; reason: string }>`
    select event, reason from usage_export.key_event where rotation = ${job.name} order by event_id
  `);

test("a rotation that never ran has an empty ledger with the database's time", async () => {
  const { ledger, now } = await readLedger(db, { name: "never", project: { id: "p", name: "p" } });
  expect(ledger).toEqual({ failedAttempts: 0, lastError: null, rollbackTo: null, keys: [] });
  expect(Math.abs(now.getTime() - Date.now())).toBeLessThan(60_000);
});

test("a pending key gains the service's answer and a sealed secret once it is stored", async () => {
  const scopesAsked = ["member", "usage:read"];
  const { rotation, intentId } = await rotationWith("intent", { scopes: scopesAsked, expiresInDays: 40 });
  const key = { project: "production", projectId: "project-1", intentId, state: "pending", scopesAsked };
  const notYet = { activeSince: null, rollbackAt: null, drainingSince: null, dueForRemovalAt: null, note: null };
  const common = { ...key, ...notYet, requestedAt: expect.any(Date), heldBy: [] };
  const intent = { ...common, step: "intent", apiKeyId: null, expiresAt: null, scopesGranted: [] };
  expect(await keyOf(rotation, intentId)).toEqual(intent);

  await rotation.write({ kind: "stored", intentId, newKey: newKey(intentId, { scopes: ["a\0b", 'c"{},'] }) });
  const stored = await keyOf(rotation, intentId);
  const expiresAt = new Date((stored?.requestedAt.getTime() ?? 0) + 40 * 24 * 60 * 60 * 1000);
  const created = { apiKeyId: `id-of-${intentId}`, expiresAt, scopesGranted: ["ab", 'c"{},'] }; // without the NUL
  expect(stored).toEqual({ ...common, ...created, step: "stored" });
  const sealed = { sealed: expect.stringMatching(/^eyJ/), master_key: "master-1" };
  expect(await rowOf(intentId)).toMatchObject({ ...sealed, created_at: newKey(intentId).created });
});

test("the count of failures is reset when a key becomes active or a rotation recovers", async () => {
  const { rotation, intentId } = await rotationWith("draining");
  await rotation.write({ kind: "failed" }, "sink away");
  await rotation.write({ kind: "failed" }, "sink still away");
  await rotation.write({ kind: "due-for-removal", intentId });
  await rotation.write({ kind: "rollback", intentId });
  const failedTwice = { failedAttempts: 2, lastError: "sink still away", rollbackTo: intentId };
  expect(await ledgerOf(rotation)).toMatchObject(failedTwice);
  await rotation.write({ kind: "active", intentId, isRollback: true });
  const none = { failedAttempts: 0, lastError: null, rollbackTo: null };
  expect(await ledgerOf(rotation)).toMatchObject(none);
  const active = { state: "active", rollbackAt: expect.any(Date), drainingSince: null, dueForRemovalAt: null };
  expect(await keyOf(rotation, intentId)).toMatchObject({ ...active, note: null });
  for (const kind of ["failed", "recovered"] as const) await rotation.write({ kind });
  expect(await ledgerOf(rotation)).toMatchObject(none);
});

test("a sink holds the last key that was delivered to it", async () => {
  const rotation = await newRotation(db);
  const [first, second] = [newIntent(), newIntent()];
  await rotation.recordKey(first, "active");
  await rotation.recordKey(second, "stored");
  for (const sink of ["a", "b"]) await rotation.write({ kind: "delivered", intentId: first, sink });
  await rotation.write({ kind: "delivered", intentId: second, sink: "a" });
  expect((await ledgerOf(rotation)).keys.map(({ heldBy }) => heldBy)).toEqual([["b"], ["a"]]);
});

test("a discarded key is due for removal at once", async () => {
  const { rotation, intentId } = await rotationWith("stored");
  await rotation.write({ kind: "discarded", intentId });
  const discarded = { state: "draining", dueForRemovalAt: expect.any(Date), activeSince: null };
  expect(await keyOf(rotation, intentId)).toMatchObject(discarded);
});

test("retiring a key removes it from the ledger and erases its secret", async () => {
  const { rotation, intentId } = await rotationWith("draining");
  await rotation.write({ kind: "retired", intentId });
  expect(await keyOf(rotation, intentId)).toBeUndefined();
  expect(await rowOf(intentId)).toMatchObject({ state: "retired", sealed: null, master_key: null });
});

test("a change that is repeated after its acknowledgement was lost is made once", async () => {
  const rotation = await newRotation(db);
  const intentId = newIntent();
  for (const changes of [["failed", "intent"], ["stored"]] as const) {
    const ids = new Map(changes.map((kind) => [kind, randomUUID()])); // a repeated change has the same id
    for (const kind of [...changes, ...changes]) {
      const change = { kind, intentId, comment: "usage exporter", newKey: newKey(intentId) } as const;
      await rotation.write(change, "a reason", ids.get(kind));
    }
  }
  expect((await ledgerOf(rotation)).failedAttempts).toBe(1);
  expect((await eventsOf(rotation)).map(({ event }) => event)).toEqual(["failed", "intent", "stored"]);
});

test("a change of a key that is not in the ledger fails without an event", async () => {
  const rotation = await newRotation(db);
  await expect(rotation.write({ kind: "verified", intentId: "ue-none" })).rejects.toMatchObject({ code: "database" });
  await expect(rotation.write({ kind: "active", intentId: "ue-none", isRollback: false })).rejects.toThrow("ue-none");
  expect(await eventsOf(rotation)).toEqual([]);
});

test("the database allows one pending key for each rotation", async () => {
  const { rotation } = await rotationWith("intent");
  await expect(rotation.recordKey(newIntent(), "intent")).rejects.toMatchObject({ code: "23505" });
});

test("a reason is stored without NUL", async () => {
  const rotation = await newRotation(db);
  await rotation.write({ kind: "failed" }, `a\0b${"x".repeat(5_000)}`);
  expect((await ledgerOf(rotation)).lastError).toHaveLength(1_000);
  expect((await eventsOf(rotation))[0]?.reason.startsWith("abx")).toBe(true);
});

test("readers never see two active keys, or none", async () => {
  const { rotation } = await rotationWith("active");
  const seen = new Set<number>();
  let isWriting = true;
  const reading = (async () => {
    while (isWriting) seen.add((await ledgerOf(rotation)).keys.filter(({ state }) => state === "active").length);
  })();
  for (let i = 0; i < 20; i++) await rotation.recordKey(newIntent(), "active");
  isWriting = false;
  await reading;
  expect([...seen]).toEqual([1]);
});

test("the error for a ledger with keys of another project says how to fix it", async () => {
  const { rotation } = await rotationWith("active");
  const project = { id: "project-2", name: "staging" };
  await expect(readLedger(db, { ...rotation.job, project })).rejects.toMatchObject({
    code: "config",
    message: expect.stringMatching(/keys of another project \(production, project-1\).*staging a name of its own/),
  });
});

test.for([
  ["off", "on"],
  ["local", "on"],
  ["remote_apply", "remote_apply"],
] as const)(
  "if synchronous_commit is %s, an intent, a created key and its secret are committed with %s",
  async ([setting, committedAs]) => {
    await using copy = await copyDatabase();
    const name = new URL(copy.directUrl).pathname.slice(1);
    await runStatement(copy.directUrl, `alter database ${name} set synchronous_commit = ${setting}`);
    await using own = openPostgres(copy.url);
    // A deferred trigger runs at the commit, so it sees the setting that the commit uses.
    await sql`
      create table public.committed (what text, setting text);
      create function public.note_commit() returns trigger language plpgsql as $$
      begin
        insert into public.committed values (concat_ws(' ', tg_table_name, new.step, new.sealed), pg_catalog.current_setting('synchronous_commit'));
        return null;
      end $$;
      create constraint trigger noted after insert or update on usage_export.api_key
        deferrable initially deferred for each row execute function public.note_commit();
    `.execute(own);
    const rotation = await newRotation(own);
    await rotation.recordKey("ue-durable", "stored");
    const { rows } = await sql`select what, setting from public.committed`.execute(own);
    expect(rows).toEqual([
      { what: "api_key intent", setting: committedAs },
      { what: expect.stringMatching(/^api_key stored eyJ/), setting: committedAs },
    ]);
  },
);

test("usableKeys returns the active key of a project before the replaced ones", async () => {
  const { job, recordKey, write } = await newRotation(db);
  const [discarded, retired, third] = [newIntent(), newIntent(), newIntent()];
  await recordKey(discarded, "verified");
  await write({ kind: "discarded", intentId: discarded });
  await recordKey(retired, "draining"); // its successor becomes active, with the id `${retired}-successor`
  await write({ kind: "retired", intentId: retired });
  await recordKey(third, "draining");
  await recordKey(newIntent(), "verified");
  const keys = await usableKeys(db, job.name, job.project.id);
  expect(keys.map(({ intentId }) => intentId)).toEqual([`${third}-successor`, third, `${retired}-successor`]);
  expect(await usableKeys(db, job.name, "project-2")).toEqual([]);
});

test("rotationsWithActiveKey contains a rotation once it has an active key", async () => {
  const { rotation, intentId } = await rotationWith("verified");
  expect(await rotationsWithActiveKey(db)).not.toContain(rotation.job.name);
  await rotation.write({ kind: "active", intentId, isRollback: false });
  expect(await rotationsWithActiveKey(db)).toContain(rotation.job.name);
});

test("a key that is sealed with another master key is sealed anew once", async () => {
  const { rotation, intentId } = await rotationWith("active");
  const found = (await sealedWithOtherMasterKey(db, "master-2")).find((each) => each.intentId === intentId);
  if (!found) throw new Error("the key was not found");
  expect(found).toMatchObject({ rotation: rotation.job.name, masterKey: "master-1" });

  for (const sealed of ["sealed anew", "sealed by another process that read the same"]) {
    await replaceSealed(db, found, { sealed, masterKey: "master-2", actor: "the test" });
  }
  expect(await readSealedKey(db, intentId)).toMatchObject({ sealed: "sealed anew" });
  expect((await sealedWithOtherMasterKey(db, "master-2")).map((each) => each.intentId)).not.toContain(intentId);
  const events = await read(sql`
    select actor, reason from usage_export.key_event where intent_id = ${intentId} and event = 'rewrapped'
  `);
  expect(events).toEqual([{ actor: "the test", reason: "sealed with the master key master-2, before with master-1" }]);
});

test("readKeys leaves out a configured rotation whose keys are all beyond the 100 that it reads", async () => {
  const rotations = ["a-many", "z-one", "z-none"].map((name) => ({ name, maxAgeDays: 30 }));
  await sql`insert into usage_export.rotation (name) values ('a-many'), ('z-one')`.execute(db);
  await sql`
    insert into usage_export.api_key (intent_id, rotation, project_id, project, state, comment, scopes_asked)
    select 'key ' || n, case when n <= 100 then 'a-many' else 'z-one' end, 'p', 'p', 'orphan', '', '{}' from generate_series(1, 101) n
  `.execute(db);
  const found = await readKeys(db, { rotations: [], file: { rotations } });
  expect(found.hasMore).toBe(true);
  const counts = found.rotations.map(({ rotation, keys }) => [rotation, keys.length]);
  expect(counts).toEqual([
    ["z-none", 0],
    ["a-many", 100],
  ]);
});
