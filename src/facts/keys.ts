// The keys of each rotation. A page waits for these reads, so each statement has a short limit.

import type { Config } from "../config/config.ts";
import { writtenRotations } from "../config/rotations.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readSnapshot } from "../db/connection/transaction.ts";
import { type KeyEventRow, type KeyStatus, keyPage, recentKeyEvents } from "../db/keys/status.ts";
import { rotationWarnings } from "../show/keys.ts";
import { mergeRotations, rotationHealth, writtenNames } from "./rotation-health.ts";

export { KEYS_PER_PAGE, type KeyStatus } from "../db/keys/status.ts";

export type KeysData = {
  readonly rotations: readonly RotationKeys[];
  /** How many keys there are; `rotations` have at most KEYS_PER_PAGE of them. */
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
  /** The newest first. */
  readonly keys: readonly KeyStatus[];
};

const EVENTS_SHOWN_MAX = 50;

/** The configured rotations, and others as long as they have keys. */
export async function readKeys(db: Database, config: Config): Promise<KeysData> {
  const [rows, { keys, found }, events] = await readSnapshot(
    db,
    async (tx) =>
      [
        mergeRotations(await rotationHealth(tx, config)),
        await keyPage(tx),
        await recentKeyEvents(tx, EVENTS_SHOWN_MAX),
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
