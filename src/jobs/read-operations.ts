// Reads what the dashboard says of jobs, runs, gaps and keys: what `status` and `keys` say, and the newest runs.

import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import { type KeyRow, keyRows } from "../db/key-status.ts";
import { queueDepths } from "../db/queue-depth.ts";
import { BRIEFLY_SECONDS, readSnapshot } from "../db/read-snapshot.ts";
import { coverageGaps, recentRuns } from "../db/status.ts";
import type { Tx } from "../db/transaction.ts";
import type { Operations, RotationLine } from "../monitor/dashboard/operations.ts";
import { type Standing, standingAt } from "./standing.ts";

const RUNS_SHOWN_MAX = 50;

export async function readOperations(db: Database, config: Config): Promise<Operations> {
  const readAll = async (tx: Tx) => {
    const state = await standingAt(tx, config);
    return {
      ...state,
      runs: await recentRuns(tx, RUNS_SHOWN_MAX),
      gaps: await coverageGaps(tx),
      rotations: rotationLines(config, state.rotations, await keyRows(tx)),
      queue: await queueDepths(tx),
    };
  };
  return readSnapshot(db, readAll, BRIEFLY_SECONDS);
}

/** The configured ones, and others as long as they have keys or something to say. */
function rotationLines(
  config: Config,
  statuses: Standing["rotations"],
  keys: readonly KeyRow[],
): readonly RotationLine[] {
  const names = new Set([...config.rotations.map(({ name }) => name), ...statuses.map(({ rotation }) => rotation)]);
  return [...names].flatMap((rotation) => {
    const configured = config.rotations.find(({ name }) => name === rotation);
    const line = {
      rotation,
      maxAgeDays: configured?.maxAgeDays ?? null,
      warnings: statuses.filter((one) => one.rotation === rotation).flatMap(({ warnings }) => warnings),
      keys: keys.filter((key) => key.rotation === rotation),
    };
    return configured || line.keys.length + line.warnings.length > 0 ? [line] : [];
  });
}
