// Checks whether the keys in use are still in the files that they were delivered to.

import { stat } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import { deliveredBy } from "../db/key-events.ts";
import { readLedger } from "../db/key-ledger.ts";
import { sealedKey } from "../db/keystore.ts";
import { AppError } from "../errors.ts";
import { staleFiles } from "../keys/deliver.ts";
import { activeKey, type Ledger, type LedgerKey } from "../keys/ledger.ts";
import type { Inspection } from "../keys/plan-next.ts";
import { type RotationJob, sinkId } from "../keys/policy.ts";
import { openSealedKey, readMasterKeys } from "../keys/seal.ts";
import type { Secret } from "../secret.ts";

/** What is wrong, by rotation. Files on another machine are not checked. */
export async function deliveryWarnings(
  app: App,
  db: Database,
  { rotations }: Config,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const warnings = new Map<string, readonly string[]>();
  for (const job of rotations) {
    const active = await activeKeyOf(db, job);
    if (!active) continue;
    const stale = await staleFiles(job.deliver, active, await secretOf(app, db, active));
    const here: string[] = [];
    for (const sink of job.deliver) {
      const fault = stale.get(sinkId(sink));
      if (sink.kind !== "file" || fault === undefined || !(await isOfThisMachine(db, job, active, sink.path))) continue;
      here.push(`${fault}: the next rotation delivers the key again, or usage-export rotate now`);
    }
    if (here.length > 0) warnings.set(job.name, here);
  }
  return warnings;
}

/** What can be learned about the key in use without a call to the service. */
export async function inspectFiles(
  app: App,
  db: Database,
  job: RotationJob,
  ledger: Ledger,
): Promise<Inspection | undefined> {
  const active = activeKey(ledger);
  if (!active) return undefined;
  const stale = await staleFiles(job.deliver, active, await secretOf(app, db, active));
  return { intentId: active.intentId, refusal: undefined, stale };
}

/** Also undefined if the rotation's keys belong to another project: every rotation reports that itself. */
async function activeKeyOf(db: Database, job: RotationJob): Promise<LedgerKey | undefined> {
  try {
    return activeKey((await readLedger(db, job)).ledger);
  } catch (error) {
    if (error instanceof AppError && error.code === "config") return undefined;
    throw error;
  }
}

/** Undefined without the right master key, which a command that only looks does not need. */
async function secretOf({ env, scrubber }: App, db: Database, { intentId }: LedgerKey): Promise<Secret | undefined> {
  try {
    const kept = await sealedKey(db, intentId);
    return kept && scrubber.add(await openSealedKey(kept.sealed, kept.apiKeyId, readMasterKeys(env)));
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** A folder that does not exist here may be on the machine, or in the container, that delivered the key. */
async function isOfThisMachine(db: Database, job: RotationJob, key: LedgerKey, file: string): Promise<boolean> {
  const folder = await stat(path.dirname(file)).catch(() => undefined);
  if (folder?.isDirectory()) return true;
  const actor = await deliveredBy(db, job.name, key.intentId, sinkId({ kind: "file", path: file }));
  return actor?.startsWith(`usage-export on ${os.hostname()} `) ?? false;
}
