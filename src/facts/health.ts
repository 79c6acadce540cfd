// The health of the program, read as of one moment: `status`, the pages, /metrics, notifications and the dead man's switch show parts of it.

import type { Config } from "../config/config.ts";
import { keyName } from "../config/projects.ts";
import { openAnomalies } from "../db/anomalies.ts";
import { storedCallPauses } from "../db/calling-processes.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { oneReadCache, type ReadOptions, readAtOneMoment, type Tx, tryWithin } from "../db/connection/transaction.ts";
import { storedWorkers } from "../db/jobs/jobs.ts";
import { watchedBudgets } from "../db/prices-and-budgets.ts";
import { storedProjectLists } from "../db/projects.ts";
import { failureCauses } from "../db/usage/failures.ts";
import { errorText } from "../errors.ts";
import { type Condition, conditionsOf, type HealthFacts } from "./conditions.ts";
import { completeness, countSlices, type ProjectHealth } from "./coverage.ts";
import { jobHealth } from "./jobs.ts";
import { mergeRotations, rotationHealth } from "./keys.ts";

/** In `rotations`, a rotation for many projects is one entry, not one for each project. */
export type HealthState = HealthFacts & { readonly conditions: readonly Condition[] };

/** Completeness may come from `cache`, and budgets from an earlier read of `db` if they can't have changed. All else is read each time. */
export async function health(
  db: Database,
  config: Config,
  { secondsMax, cache = oneReadCache }: ReadOptions = {},
): Promise<HealthState> {
  // `cache` is called before the transaction takes its snapshot, so that its rows are never newer than the snapshot.
  const openQuery = cache();
  const read = async (tx: Tx) => healthFacts(db, tx, config, await completeness(await openQuery(tx)));
  return withConditions(await readAtOneMoment(db, read, secondsMax));
}

export function withConditions(facts: HealthFacts): HealthState {
  return { ...facts, rotations: mergeRotations(facts.rotations), conditions: conditionsOf(facts) };
}

async function healthFacts(db: Database, tx: Tx, config: Config, projects: readonly ProjectHealth[]) {
  const now = await databaseNow(tx);
  const slices = countSlices(projects);
  const workers = await storedWorkers(tx);
  const causes = slices.failed > 0 ? await failureCauses(tx) : [];
  const discoveryKeys = new Set(config.discovery.map(({ key }) => keyName(key)));
  const hasWorker = workers.some(({ recent }) => recent);
  return {
    readAt: now,
    callPauses: await storedCallPauses(tx),
    jobs: await jobHealth(tx, config, projects, now),
    workers,
    projects,
    slices,
    causes: causes.map((cause) => ({ ...cause, isRetried: hasWorker && cause.isRetried })),
    rotations: await rotationHealth(tx, config.rotations),
    lists: (await storedProjectLists(tx)).filter((list) => discoveryKeys.has(list.keyName)),
    ...(await usageFacts(db, tx, config)),
  };
}

/** Reads what takes longer with more stored usage. If that fails or takes too long, both lists are empty, and `notRead` says why. */
async function usageFacts(db: Database, tx: Tx, config: Config) {
  const read = await tryWithin(tx, async () => ({
    budgets: await watchedBudgets(db, tx),
    anomalies: config.anomalies.sensitivity === "off" ? [] : await openAnomalies(tx),
  }));
  return "value" in read ? read.value : { budgets: [], anomalies: [], notRead: errorText(read.error) };
}

/** Whether nothing is wrong. Conditions that only remind a person, such as a budget that is used up, do not count. */
export function isWell({ conditions }: Pick<HealthState, "conditions">): boolean {
  return !conditions.some(({ isWrong }) => isWrong);
}
