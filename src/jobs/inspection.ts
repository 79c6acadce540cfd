// What `status` finds out about this machine: whether the active keys are still in the files that they were delivered to, and the clocks.

import { stat } from "node:fs/promises";
import path from "node:path";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { type DeliveredKey, deliveredKeys, sealedKey } from "../db/keys/keystore.ts";
import { AppError } from "../errors.ts";
import { READ_MS_MAX, withFileLimit } from "../files.ts";
import { activeKey, type Ledger } from "../keys/ledger.ts";
import type { Inspection } from "../keys/plan.ts";
import { type RotationJob, sinkId } from "../keys/policy.ts";
import { openSealedKey, readMasterKeys } from "../keys/seal.ts";
import { staleFiles } from "../keys/sinks.ts";
import { openServiceFor } from "../open-service.ts";
import type { Secret } from "../secret.ts";
import { projectsText } from "../text.ts";

/**
 * What is wrong with the files of active keys, by rotation as the configuration names it. A file in a folder that is not on this machine is
 * not checked: another machine or container may have delivered it. Nor are rotations whose keys belong to another project: each of their
 * runs reports that.
 */
export async function deliveryWarnings(
  app: App,
  db: Database,
  { rotations }: Config,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const delivering = rotations.filter(({ deliver }) => deliver.some(({ kind }) => kind === "file"));
  const keys = new Map(delivering.length > 0 ? (await deliveredKeys(db)).map((key) => [key.rotation, key]) : []);
  const found: { readonly job: Config["rotations"][number]; readonly text: string }[] = [];
  for (const job of delivering) {
    const key = keys.get(job.name);
    if (key?.projectId !== job.project.id) continue;
    const stale = await staleFilesOf(app, job, key);
    for (const sink of job.deliver) {
      const fault = stale.get(sinkId(sink));
      if (sink.kind !== "file" || fault === undefined || !(await isFolder(path.dirname(sink.path)))) continue;
      const text = `${fault}: the next rotation delivers the key again; to do that now, run: usage-export rotate`;
      found.push({ job, text });
    }
  }
  return new Map(
    [...Map.groupBy(found, ({ job }) => job.group ?? job.name)].map(([name, ofRotation]) => {
      const texts = ofRotation.map(({ text }) => text);
      const all = rotations.filter(({ group }) => group === name).length;
      const projects = [...new Set(ofRotation.map(({ job }) => job.project.name))];
      return [name, all === 0 ? texts : [`in ${projectsText(projects, all)}, the first: ${texts[0]}`]];
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

async function isFolder(folder: string): Promise<boolean> {
  const found = await withFileLimit(folder, READ_MS_MAX, () => stat(folder)).catch(() => undefined);
  return found?.isDirectory() ?? false;
}

// Compares the clocks that scheduled runs depend on: this machine's, the database's and the service's.

/** By how many seconds each clock is ahead of this machine's clock; negative if it is behind. */
export type Clocks = {
  readonly databaseAheadSeconds: number;
  /** Null if the service was not asked or did not tell its time. */
  readonly serviceAheadSeconds: number | null;
};

export async function compareClocks(app: App, config: Config, db: Database, askService: boolean): Promise<Clocks> {
  const databaseAheadSeconds = await aheadSeconds(() => databaseNow(db));
  const serviceAheadSeconds = askService ? await aheadSeconds(() => timeOfService(app, config)) : undefined;
  return { databaseAheadSeconds: databaseAheadSeconds ?? 0, serviceAheadSeconds: serviceAheadSeconds ?? null };
}

async function timeOfService(app: App, config: Config): Promise<Date | undefined> {
  const service = await openServiceFor(app, config, undefined);
  try {
    return await service.fetchTime(app.signal);
  } finally {
    await service.close();
  }
}

/** Compares the answer with this machine's time halfway between question and answer. */
async function aheadSeconds(ask: () => Promise<Date | undefined>): Promise<number | undefined> {
  const askedMs = Date.now();
  const time = await ask();
  return time && Math.round((time.getTime() - (askedMs + Date.now()) / 2) / 1000);
}

const DIFFERENCE_SECONDS_MAX = 30;

/** Undefined if the clocks differ by too little to matter. */
export function clockWarning({ databaseAheadSeconds: database, serviceAheadSeconds }: Clocks): string | undefined {
  const service = serviceAheadSeconds ?? undefined;
  const known = [0, database, ...(service === undefined ? [] : [service])];
  if (Math.max(...known) - Math.min(...known) <= DIFFERENCE_SECONDS_MAX) return undefined;
  const parts = [
    `the database's is ${differenceText(database)} this machine's`,
    ...(service === undefined ? [] : [`the service's ${differenceText(service)} it`]),
  ];
  return `clocks differ: ${parts.join(", ")}; schedules and days go by the database's clock: set the one that is wrong`;
}

function differenceText(seconds: number): string {
  if (seconds === 0) return "the same as";
  return `${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"}`;
}
