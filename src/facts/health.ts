// The health of the program at one moment, and the conditions that a person should know of. `status`, the pages, /metrics, the notifications
// and the dead man's switch show parts of it.

import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { readSnapshot } from "../db/connection/transaction.ts";
import type { QueueDepth } from "../db/jobs/queue.ts";
import { type Condition, conditionsOf } from "./conditions.ts";
import { type FactsOptions, type HealthFacts, healthFacts } from "./health-facts.ts";
import { type JobHealth, mergeJobs } from "./job-health.ts";
import { mergeRotations, type RotationHealth } from "./rotation-health.ts";

export type HealthState = Omit<HealthFacts, "jobs" | "rotations"> & {
  /** The exports first. */
  readonly jobs: readonly JobHealth[];
  /** Rotations that have run at least once. */
  readonly rotations: readonly RotationHealth[];
  readonly conditions: readonly Condition[];
};

type HealthOptions = FactsOptions & {
  /** The limit of each statement. */
  readonly statementSecondsMax?: number;
};

export async function health(db: Database, config: Config, options: HealthOptions = {}): Promise<HealthState> {
  const facts = await readSnapshot(db, (tx) => healthFacts(db, tx, config, options), options.statementSecondsMax);
  return healthOf(facts);
}

export function healthOf(facts: HealthFacts): HealthState {
  const { jobs, rotations } = facts;
  return { ...facts, jobs: mergeJobs(jobs), rotations: mergeRotations(rotations), conditions: conditionsOf(facts) };
}

/** Every due slice is complete, no run failed, no rotation warns, and no job waits for a worker. The usage itself does not matter here. */
export function isWell({ conditions }: Pick<HealthState, "conditions">): boolean {
  return !conditions.some(({ isWrong }) => isWrong);
}

const QUEUE_STATE_WORDS = {
  waiting: "waiting",
  retrying: "waiting for a retry",
  active: "in progress",
  dead: "given up in the last day",
} as const;

/** How many queue jobs there are in each state, as "3 waiting", in the order in which a job passes through the states. */
export function queueTotals(queue: readonly QueueDepth[]): readonly { readonly jobs: number; readonly text: string }[] {
  return Object.entries(QUEUE_STATE_WORDS).map(([state, words]) => {
    const jobs = queue.reduce((sum, one) => sum + (one.state === state ? one.jobs : 0), 0);
    return { jobs, text: `${jobs} ${words}` };
  });
}
