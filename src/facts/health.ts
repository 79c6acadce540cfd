// The health of the program at one moment. `status`, the pages, /metrics, the notifications and the dead man's switch show parts of it.

import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { readSnapshot } from "../db/connection/transaction.ts";
import { type Condition, conditionsOf } from "./conditions.ts";
import { type HealthFacts, healthFacts } from "./health-facts.ts";
import { mergeRotations, type RotationHealth } from "./keys.ts";

export type HealthState = Omit<HealthFacts, "rotations"> & {
  /** Rotations that have run at least once. */
  readonly rotations: readonly RotationHealth[];
  readonly conditions: readonly Condition[];
};

/** `statementSecondsMax` is the limit of each statement. */
export async function health(db: Database, config: Config, statementSecondsMax?: number): Promise<HealthState> {
  return healthOf(await readSnapshot(db, (tx) => healthFacts(db, tx, config), statementSecondsMax));
}

export function healthOf(facts: HealthFacts): HealthState {
  return { ...facts, rotations: mergeRotations(facts.rotations), conditions: conditionsOf(facts) };
}

/** Every due slice is complete, no run failed, no rotation warns, and no job waits for a worker. The usage itself does not matter here. */
export function isWell({ conditions }: Pick<HealthState, "conditions">): boolean {
  return !conditions.some(({ isWrong }) => isWrong);
}
