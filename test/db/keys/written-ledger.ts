// Writes to a key ledger as a rotation does. A test gives only the fields that matter to it.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { pino } from "pino";
import type { RotationConfig } from "../../../src/config/rotations.ts";
import type { Database } from "../../../src/db/connection/database.ts";
import { type Lease, takeLease } from "../../../src/db/keys/lease.ts";
import { type LedgerChange, type NewKey, openKeyLedger } from "../../../src/db/keys/ledger.ts";
import { Scrubber, Secret } from "../../../src/secret.ts";
import type { Project } from "../../../src/usage/series.ts";
import { JOB } from "../../keys/sample-ledger.ts";

export type Writer = {
  readonly job: RotationConfig;
  readonly lease: Lease;
  readonly write: (change: LedgerChange, reason?: string, changeId?: string) => Promise<void>;
  /** Records a new key and all its changes up to this state. */
  readonly recordKey: (intentId: string, as: KeyState) => Promise<void>;
};

export type KeyState = (typeof STATES)[number];
const STATES = ["intent", "stored", "verified", "active", "draining"] as const;

const MASTER_KEY = { id: "master-1", bytes: Buffer.alloc(32, 1) };
const MASTER_KEYS = { current: MASTER_KEY, all: [MASTER_KEY] };
const SILENT = pino({ level: "silent" });

/** A rotation that no other test uses, with its lease. */
export async function newRotation(db: Database, fields: Partial<RotationConfig> = {}): Promise<Writer> {
  const job = { ...JOB, name: `rotation-${randomUUID()}`, ...fields };
  const lease = await takeLease(db, job);
  if (!lease) throw new Error(`the lease of ${job.name} is taken`);
  return writer(db, job, lease);
}

export function writer(db: Database, job: RotationConfig, lease: Lease): Writer {
  const write: Writer["write"] = (change, reason = "a reason", changeId = randomUUID()) => {
    const options = { job, lease, actor: "the test", masterKeys: MASTER_KEYS, scrubber: new Scrubber(), log: SILENT };
    return openKeyLedger(db, { ...options, newChangeId: () => changeId }).write(change, reason);
  };
  const changes = (intentId: string): readonly LedgerChange[] => [
    { kind: "intent", intentId, comment: `usage exporter [${intentId}]` },
    { kind: "stored", intentId, newKey: newKey(intentId) },
    { kind: "verified", intentId },
    { kind: "active", intentId, isRollback: false },
  ];
  return {
    job,
    lease,
    write,
    async recordKey(intentId, as) {
      for (const change of changes(intentId).slice(0, STATES.indexOf(as) + 1)) await write(change);
      if (as === "draining") {
        for (const change of changes(`${intentId}-successor`)) await write(change);
      }
    },
  };
}

/** A rotation that has used `count` keys, one after the other. `keys` are their ids. */
export async function usedKeys(db: Database, project: RotationConfig["project"], count = 2) {
  const { job, recordKey } = await newRotation(db, { project });
  const intents = Array.from({ length: count }, newIntent);
  for (const intentId of intents) await recordKey(intentId, "active");
  return { rotation: job.name, recordKey, keys: intents.map((intentId) => newKey(intentId).apiKeyId) };
}

/** Stores keys that the rotation once made for the project. */
export async function storeFormerKeys(db: Database, rotation: string, { id, name }: Project, keys: readonly string[]) {
  await sql`insert into usage_export.rotation (name) values (${rotation}) on conflict do nothing`.execute(db);
  for (const key of keys)
    await sql`
      insert into usage_export.api_key (intent_id, rotation, project_id, project, api_key_id, state, comment, scopes_asked)
      values (${newIntent()}, ${rotation}, ${id}, ${name}, ${key}, 'retired', '', '{}')
    `.execute(db);
}

export function newKey(intentId: string, fields: Partial<NewKey> = {}): NewKey {
  return {
    ...{ apiKeyId: `id-of-${intentId}`, key: new Secret("e".repeat(40)), scopes: ["member"] },
    created: new Date("2026-05-01T12:00:00.123Z"),
    ...fields,
  };
}

/** Unique, because all tests of a file write to one database. */
export function newIntent(): string {
  return `ue-${randomUUID()}`;
}
