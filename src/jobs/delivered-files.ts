// Whether the active keys are still in the files that they were delivered to.

import { stat } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { lastDeliveredBy } from "../db/keys/events.ts";
import { sealedKey } from "../db/keys/keystore.ts";
import { readLedger } from "../db/keys/ledger.ts";
import { AppError } from "../errors.ts";
import { activeKey, type Ledger, type LedgerKey } from "../keys/ledger.ts";
import type { Inspection } from "../keys/plan.ts";
import { type RotationJob, sinkId } from "../keys/policy.ts";
import { openSealedKey, readMasterKeys } from "../keys/seal.ts";
import { staleFiles } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";

/** What is wrong with the files of active keys, by rotation. Files on another machine are not checked. */
export async function deliveryWarnings(
  app: App,
  db: Database,
  { rotations }: Config,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const warnings = new Map<string, readonly string[]>();
  for (const job of rotations) {
    const active = await activeKeyOf(db, job);
    if (!active) continue;
    const stale = await staleFilesOf(app, db, job, active);
    const here: string[] = [];
    for (const sink of job.deliver) {
      const fault = stale.get(sinkId(sink));
      if (sink.kind !== "file" || fault === undefined || !(await isOnThisMachine(db, job, active, sink.path))) continue;
      here.push(`${fault}: the next rotation delivers the key again; to do that now, run: usage-export rotate`);
    }
    if (here.length > 0) warnings.set(job.name, here);
  }
  return warnings;
}

/** Inspects the active key without a call to the service. */
export async function inspectFiles(
  app: App,
  db: Database,
  job: RotationJob,
  ledger: Ledger,
): Promise<Inspection | undefined> {
  const active = activeKey(ledger);
  if (!active) return undefined;
  return { intentId: active.intentId, refusal: undefined, stale: await staleFilesOf(app, db, job, active) };
}

async function staleFilesOf({ env, scrubber }: App, db: Database, job: RotationJob, active: LedgerKey) {
  let secret: Secret | undefined;
  try {
    const stored = await sealedKey(db, active.intentId);
    secret = stored && (await openSealedKey(stored, readMasterKeys(env), scrubber));
  } catch (error) {
    // A command that only reads works without the master key: then only the existence of the files is checked.
    if (!(error instanceof AppError)) throw error;
  }
  return staleFiles(job.deliver, active.deliveredTo, secret);
}

/** Also undefined if the rotation's keys belong to another project: each run of the rotation reports that. */
async function activeKeyOf(db: Database, job: RotationJob): Promise<LedgerKey | undefined> {
  try {
    return activeKey((await readLedger(db, job)).ledger);
  } catch (error) {
    if (error instanceof AppError && error.code === "config") return undefined;
    throw error;
  }
}

/** Whether the file should be on this machine. If its folder is not, another machine or container may have delivered the key there. */
async function isOnThisMachine(db: Database, job: RotationJob, key: LedgerKey, file: string): Promise<boolean> {
  const folder = await stat(path.dirname(file)).catch(() => undefined);
  if (folder?.isDirectory()) return true;
  const actor = await lastDeliveredBy(db, job.name, key.intentId, sinkId({ kind: "file", path: file }));
  return actor?.startsWith(`usage-export on ${os.hostname()} `) ?? false;
}
