// The health of the program at one moment: jobs, workers, coverage, rotations, budgets and unusual days, read in one snapshot. `status`, the
// pages, /metrics, the notifications and the dead man's switch show parts of it.

import type { Config } from "../config/config.ts";
import { keyName } from "../config/projects.ts";
import { openAnomalies } from "../db/anomalies.ts";
import { storedPauses } from "../db/calling-processes.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import {
  keptForOneRead,
  type Query,
  type ReadOptions,
  readSnapshot,
  type Tx,
  tryWithin,
} from "../db/connection/transaction.ts";
import { storedWorkers } from "../db/jobs/jobs.ts";
import { watchedBudgets } from "../db/prices-and-budgets.ts";
import { storedLists } from "../db/projects.ts";
import { failureCauses } from "../db/usage/failures.ts";
import { errorText } from "../errors.ts";
import { type Condition, conditionsOf, type HealthFacts } from "./conditions.ts";
import { completeness, countSlices } from "./coverage.ts";
import { jobHealth } from "./jobs.ts";
import { mergeRotations, type RotationHealth, rotationHealth } from "./keys.ts";

export type HealthState = Omit<HealthFacts, "rotations"> & {
  /** Each rotation that has run is one here, even if it is for many projects. */
  readonly rotations: readonly RotationHealth[];
  readonly conditions: readonly Condition[];
};

/** `secondsMax` is the limit of each statement. How many slices are complete is read anew only if `kept` does not know it. */
export async function health(
  db: Database,
  config: Config,
  { secondsMax, kept = keptForOneRead }: ReadOptions = {},
): Promise<HealthState> {
  const openQuery = kept();
  const read = async (tx: Tx) => healthFacts(db, tx, config, await openQuery(tx));
  return healthOf(await readSnapshot(db, read, secondsMax));
}

export function healthOf(facts: HealthFacts): HealthState {
  return { ...facts, rotations: mergeRotations(facts.rotations), conditions: conditionsOf(facts) };
}

/** `tx` is a snapshot of `db`. */
async function healthFacts(db: Database, tx: Tx, config: Config, query: Query): Promise<HealthFacts> {
  const now = await databaseNow(tx);
  const projects = await completeness(query);
  const slices = countSlices(projects);
  const workers = await storedWorkers(tx);
  const causes = slices.failed > 0 ? await failureCauses(tx) : [];
  const discovered = new Set(config.discovery.map(({ key }) => keyName(key)));
  // If no worker runs, nothing is retried.
  const isRetried = workers.some(({ recent }) => recent);
  return {
    readAt: now,
    callPauses: await storedPauses(tx),
    jobs: await jobHealth(tx, config, projects, now),
    workers,
    projects,
    slices,
    causes: causes.map((cause) => ({ ...cause, isRetried: isRetried && cause.isRetried })),
    rotations: await rotationHealth(tx, config.rotations),
    // A list whose entry was removed from the configuration is of no interest any more.
    lists: (await storedLists(tx)).filter(({ list }) => discovered.has(list)),
    ...(await usageFacts(db, tx, config)),
  };
}

/** Budgets and anomalies take longer to read the more usage is stored. If that exceeds the time limit, the other facts are still known. */
async function usageFacts(db: Database, tx: Tx, config: Config) {
  const read = await tryWithin(tx, async () => ({
    budgets: await watchedBudgets(db, tx),
    anomalies: config.anomalies.sensitivity === "off" ? [] : await openAnomalies(tx),
  }));
  return "value" in read ? read.value : { budgets: [], anomalies: [], notRead: errorText(read.error) };
}

/** Reminders, such as a budget that is used up or unusual usage, do not count. */
export function isWell({ conditions }: Pick<HealthState, "conditions">): boolean {
  return !conditions.some(({ isWrong }) => isWrong);
}
