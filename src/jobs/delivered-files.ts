// Whether the active keys are still in the files that they were delivered to.

import { stat } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { lastDeliveredBy } from "../db/keys/events.ts";
import { type DeliveredKey, deliveredKeys, sealedKey } from "../db/keys/keystore.ts";
import { AppError } from "../errors.ts";
import { READ_MS_MAX, withFileLimit } from "../files.ts";
import { activeKey, type Ledger } from "../keys/ledger.ts";
import type { Inspection } from "../keys/plan.ts";
import { type RotationJob, sinkId } from "../keys/policy.ts";
import { openSealedKey, readMasterKeys } from "../keys/seal.ts";
import { staleFiles } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";
import { projectsText } from "../text.ts";

/**
 * What is wrong with the files of active keys, by rotation as the configuration names it. Files on another machine are not checked, nor are
 * rotations whose keys belong to another project: each run of such a rotation reports that.
 */
export async function deliveryWarnings(
  app: App,
  db: Database,
  { rotations }: Config,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const delivering = rotations.filter(({ deliver }) => deliver.some(({ kind }) => kind === "file"));
  if (delivering.length === 0) return new Map();
  const keys = new Map((await deliveredKeys(db)).map((key) => [key.rotation, key]));
  const found: {
    readonly name: string;
    readonly isOfMany: boolean;
    readonly project: string;
    readonly text: string;
  }[] = [];
  for (const job of delivering) {
    const key = keys.get(job.name);
    if (!key || key.projectId !== job.project.id) continue;
    const stale = await staleFilesOf(app, job, key);
    for (const sink of job.deliver) {
      const fault = stale.get(sinkId(sink));
      if (sink.kind !== "file" || fault === undefined || !(await isOnThisMachine(db, job, key, sink.path))) continue;
      const text = `${fault}: the next rotation delivers the key again; to do that now, run: usage-export rotate`;
      found.push({ name: job.group ?? job.name, isOfMany: job.group !== undefined, project: job.project.name, text });
    }
  }
  const byRotation = Map.groupBy(found, ({ name }) => name);
  return new Map(
    [...byRotation].map(([name, ofRotation]) => {
      const [first] = ofRotation;
      if (!first?.isOfMany) return [name, ofRotation.map(({ text }) => text)];
      const projects = [...new Set(ofRotation.map(({ project }) => project))];
      const all = delivering.filter(({ group }) => group === name).length;
      return [name, [`in ${projectsText(projects, all)}, the first: ${first.text}`]];
    }),
  );
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
  const { intentId, deliveredTo } = active;
  const sealed = await sealedKey(db, intentId);
  return { intentId, refusal: undefined, stale: await staleFilesOf(app, job, { deliveredTo, sealed }) };
}

async function staleFilesOf(
  { env, scrubber }: App,
  job: RotationJob,
  { deliveredTo, sealed }: Pick<DeliveredKey, "deliveredTo" | "sealed">,
) {
  let secret: Secret | undefined;
  try {
    secret = sealed && (await openSealedKey(sealed, readMasterKeys(env), scrubber));
  } catch (error) {
    // A command that only reads works without the master key: then only the existence of the files is checked.
    if (!(error instanceof AppError)) throw error;
  }
  return staleFiles(job.deliver, deliveredTo, secret);
}

/** Whether the file should be on this machine. If its folder is not, another machine or container may have delivered the key there. */
async function isOnThisMachine(db: Database, job: RotationJob, key: DeliveredKey, file: string): Promise<boolean> {
  const folder = await withFileLimit(file, READ_MS_MAX, () => stat(path.dirname(file))).catch(() => undefined);
  if (folder?.isDirectory()) return true;
  const actor = await lastDeliveredBy(db, job.name, key.intentId, sinkId({ kind: "file", path: file }));
  return actor?.startsWith(`usage-export on ${os.hostname()} `) ?? false;
}
