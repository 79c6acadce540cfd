// Reads what pages of the dashboard show besides the health state: the newest runs, one run, and the keys of each rotation. A page
// waits for these reads, so each statement has the short limit of BRIEF_SNAPSHOT_SECONDS.

import type { Config } from "../config/config.ts";
import { groupedRotations } from "../config/rotations.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot } from "../db/connection/transaction.ts";
import { type RecentRun, recentRuns } from "../db/jobs/recent-runs.ts";
import { type RunDetails, readRunDetails } from "../db/jobs/run-details.ts";
import { type KeyEventRow, type KeyStatus, keyStatuses, recentKeyEvents, rotationRows } from "../db/keys/status.ts";
import { rotationWarnings } from "./alerts.ts";
import { groupFinder, mergeRotations } from "./rotation-groups.ts";

export type { KeyStatus, RecentRun, RunDetails };

const RUNS_SHOWN_MAX = 100;

/** The newest first. */
export async function readRuns(db: Database): Promise<readonly RecentRun[]> {
  return readSnapshot(db, (tx) => recentRuns(tx, RUNS_SHOWN_MAX), BRIEF_SNAPSHOT_SECONDS);
}

/** Undefined if there is no such run. */
export async function readRun(db: Database, runId: string): Promise<RunDetails | undefined> {
  return readSnapshot(db, (tx) => readRunDetails(tx, runId), BRIEF_SNAPSHOT_SECONDS);
}

export type KeysData = {
  readonly rotations: readonly RotationKeys[];
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
  /** The newest first. */
  readonly keys: readonly KeyStatus[];
};

const EVENTS_SHOWN_MAX = 50;

/** The configured rotations, and others as long as they have keys or warnings. */
export async function readKeys(db: Database, { rotations }: Config): Promise<KeysData> {
  const [rows, keys, events] = await readSnapshot(
    db,
    async (tx) => [await rotationRows(tx), await keyStatuses(tx), await recentKeyEvents(tx, EVENTS_SHOWN_MAX)] as const,
    BRIEF_SNAPSHOT_SECONDS,
  );
  const configured = new Map(groupedRotations(rotations).map((one) => [one.name, one]));
  const groupOf = groupFinder(rotations);
  const rowOf = new Map(mergeRotations(rows, groupOf).map((row) => [row.rotation, row]));
  const keysOf = Map.groupBy(keys, ({ rotation }) => groupOf(rotation)?.group ?? rotation);
  const shown = [...new Set([...configured.keys(), ...rowOf.keys()])].flatMap((rotation) => {
    const row = rowOf.get(rotation);
    const line = {
      rotation,
      isOfMany: configured.get(rotation)?.group !== undefined,
      maxAgeDays: configured.get(rotation)?.maxAgeDays ?? null,
      warnings: row ? rotationWarnings(row) : [],
      keys: keysOf.get(rotation) ?? [],
    };
    return configured.has(rotation) || line.keys.length + line.warnings.length > 0 ? [line] : [];
  });
  return { rotations: shown, events };
}
