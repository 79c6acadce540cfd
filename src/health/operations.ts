// Reads what pages of the dashboard show besides the health state: the newest runs, one run, and the keys of each rotation. A page
// waits for these reads, so each statement has the short limit of BRIEF_SNAPSHOT_SECONDS.

import type { Config } from "../config/config.ts";
import { writtenRotations } from "../config/rotations.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot } from "../db/connection/transaction.ts";
import {
  PROJECT_OUTCOMES,
  PROJECTS_PER_PAGE,
  type ProjectFilter,
  type RecentRun,
  RUN_STATUSES,
  type RunDetails,
  type RunFilter,
  type RunList,
  readRunDetails,
  recentRuns,
} from "../db/jobs/recent-runs.ts";
import {
  KEY_STATES,
  KEYS_PER_PAGE,
  type KeyEventRow,
  type KeyFilter,
  type KeyStatus,
  keyPage,
  recentKeyEvents,
  rotationRows,
} from "../db/keys/status.ts";
import { existingPage } from "../db/pages.ts";
import { rotationWarnings } from "../show/keys.ts";
import { ledgerGroups, mergeRotations } from "./rotation-groups.ts";

export {
  existingPage,
  KEY_STATES,
  KEYS_PER_PAGE,
  type KeyFilter,
  type KeyStatus,
  PROJECT_OUTCOMES,
  PROJECTS_PER_PAGE,
  type ProjectFilter,
  type RecentRun,
  RUN_STATUSES,
  type RunDetails,
  type RunFilter,
  type RunList,
};

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

/** The configured rotations, and others as long as they have keys or warnings. */
export async function readKeys(db: Database, config: Config, filter: KeyFilter): Promise<KeysData> {
  const [rows, { keys, found }, events] = await readSnapshot(
    db,
    async (tx) =>
      [
        await rotationRows(tx),
        await keyPage(tx, filter),
        await recentKeyEvents(tx, EVENTS_SHOWN_MAX, filter.search),
      ] as const,
    BRIEF_SNAPSHOT_SECONDS,
  );
  const configured = new Map(writtenRotations(config).map((one) => [one.name, one]));
  const groupOf = ledgerGroups(config, rows);
  const rowOf = new Map(mergeRotations(rows, groupOf).map((row) => [row.rotation, row]));
  const keysOf = Map.groupBy(keys, ({ rotation }) => groupOf(rotation)?.group ?? rotation);
  const shown = [...new Set([...configured.keys(), ...rowOf.keys(), ...keysOf.keys()])].flatMap((rotation) => {
    const [row, settings] = [rowOf.get(rotation), configured.get(rotation)];
    const { active = 0, pending = 0, draining = 0, orphan = 0 } = row?.keys ?? {};
    const line = {
      rotation,
      isOfMany: settings ? settings.projects !== undefined : row?.projects !== undefined,
      maxAgeDays: settings?.maxAgeDays ?? null,
      warnings: row ? rotationWarnings(row) : [],
      counts: { active, pending, draining, orphan },
      keys: keysOf.get(rotation) ?? [],
    };
    const hasKeys = active + pending + draining + orphan + line.keys.length > 0;
    return settings || hasKeys || line.warnings.length > 0 ? [line] : [];
  });
  return { rotations: shown, found, events };
}
