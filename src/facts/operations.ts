// The newest runs, one run, and the keys of each rotation. A page waits for these reads, so each statement has a short limit.

import type { Config } from "../config/config.ts";
import { writtenRotations } from "../config/rotations.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot } from "../db/connection/transaction.ts";
import {
  type ProjectFilter,
  type RunDetails,
  type RunFilter,
  type RunList,
  readRunDetails,
  recentRuns,
} from "../db/jobs/recent-runs.ts";
import { type KeyEventRow, type KeyFilter, type KeyStatus, keyPage, recentKeyEvents } from "../db/keys/status.ts";
import { rotationWarnings } from "../show/keys.ts";
import { mergeRotations, rotationHealth, writtenNames } from "./rotation-health.ts";

export {
  PROJECT_OUTCOMES,
  PROJECTS_PER_PAGE,
  type ProjectFilter,
  type RecentRun,
  RUN_STATUSES,
  type RunDetails,
  type RunFilter,
  type RunList,
} from "../db/jobs/recent-runs.ts";
export { KEYS_PER_PAGE, type KeyFilter, type KeyStatus } from "../db/keys/status.ts";
export { existingPage } from "../db/limits.ts";

export async function readRuns(db: Database, filter: RunFilter): Promise<RunList> {
  return readSnapshot(db, (tx) => recentRuns(tx, filter), BRIEF_SNAPSHOT_SECONDS);
}

/** Undefined if there is no such run. */
export async function readRun(db: Database, runId: string, filter: ProjectFilter): Promise<RunDetails | undefined> {
  return readSnapshot(db, (tx) => readRunDetails(tx, runId, filter), BRIEF_SNAPSHOT_SECONDS);
}

export type KeysData = {
  readonly rotations: readonly RotationKeys[];
  /** How many keys the filter lets through; `rotations` have one page of them. */
  readonly found: number;
  /** The newest first. */
  readonly events: readonly KeyEventRow[];
};

export type RotationKeys = {
  readonly rotation: string;
  /** It is for many projects, each with keys of its own. */
  readonly isOfMany?: boolean;
  /** Null if it is not configured any more. */
  readonly maxAgeDays: number | null;
  readonly warnings: readonly string[];
  /** How many keys of each state it has. */
  readonly counts: Readonly<Record<"active" | "pending" | "draining" | "orphan", number>>;
  /** Those on this page, the newest first. */
  readonly keys: readonly KeyStatus[];
};

const EVENTS_SHOWN_MAX = 50;

/** The configured rotations, and others as long as they have keys. */
export async function readKeys(db: Database, config: Config, filter: KeyFilter): Promise<KeysData> {
  const [rows, { keys, found }, events] = await readSnapshot(
    db,
    async (tx) =>
      [
        mergeRotations(await rotationHealth(tx, config)),
        await keyPage(tx, filter),
        await recentKeyEvents(tx, EVENTS_SHOWN_MAX, filter.search),
      ] as const,
    BRIEF_SNAPSHOT_SECONDS,
  );
  const configured = new Map(writtenRotations(config).map((one) => [one.name, one]));
  const writtenNameOf = writtenNames(config);
  const rowOf = new Map(rows.map((row) => [row.rotation, row]));
  const keysOf = Map.groupBy(keys, (key) => writtenNameOf(key.rotation, key.projectId).rotation);
  const rotations = [...new Set([...configured.keys(), ...rowOf.keys(), ...keysOf.keys()])].flatMap((rotation) => {
    const [row, settings] = [rowOf.get(rotation), configured.get(rotation)];
    const { active = 0, pending = 0, draining = 0, orphan = 0 } = row?.keys ?? {};
    const shown = keysOf.get(rotation) ?? [];
    if (!settings && active + pending + draining + orphan + shown.length === 0) return [];
    return {
      rotation,
      isOfMany: settings ? settings.projects !== undefined : row?.projects !== undefined,
      maxAgeDays: settings?.maxAgeDays ?? null,
      warnings: row ? rotationWarnings(row) : [],
      ...{ counts: { active, pending, draining, orphan }, keys: shown },
    };
  });
  return { rotations, found, events };
}
