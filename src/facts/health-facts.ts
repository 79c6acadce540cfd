// What is known of the program at one moment, read in one snapshot: jobs, workers, coverage, rotations, budgets and unusual days.

import { type Config, listOf } from "../config/config.ts";
import { type OpenAnomaly, openAnomalies } from "../db/anomalies.ts";
import { type CallPause, storedPauses } from "../db/calling-processes.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { type Tx, tryWithin } from "../db/connection/transaction.ts";
import { type StoredWorker, storedWorkers } from "../db/jobs/jobs.ts";
import { watchedBudgets } from "../db/prices-and-budgets.ts";
import { type StoredList, storedLists } from "../db/projects.ts";
import { type FailureCause, failureCauses } from "../db/usage/failures.ts";
import { errorText } from "../errors.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import { completeness, countSlices, type ProjectHealth, type SliceCounts } from "./coverage.ts";
import { type JobHealth, jobHealth } from "./job-health.ts";
import { type RotationHealth, rotationHealth } from "./keys.ts";

/** What the conditions are computed from. A rotation of many projects is one for each of them here. */
export type HealthFacts = {
  /** The moment of reading, by the database's clock. */
  readonly readAt: Date;
  /** The pauses that the service asked for. */
  readonly callPauses: readonly CallPause[];
  /** The exports first. */
  readonly jobs: readonly JobHealth[];
  /** The worker seen last comes first. */
  readonly workers: readonly StoredWorker[];
  /** One for each project and source. */
  readonly projects: readonly ProjectHealth[];
  readonly slices: SliceCounts;
  /** Why slices are failed; the cause with the most slices comes first. */
  readonly causes: readonly FailureCause[];
  readonly rotations: readonly RotationHealth[];
  /** The lists of projects that the configuration discovers projects by. */
  readonly lists: readonly StoredList[];
  /** Budgets in the periods that somebody should watch. */
  readonly budgets: readonly BudgetUse[];
  /** One for each project and filter with unusual days; empty if `anomalies` is off. */
  readonly anomalies: readonly OpenAnomaly[];
  /** Why budgets and anomalies could not be read; undefined if they were. Their lists are empty then; all else was read. */
  readonly notRead?: string;
};

/** `tx` is a snapshot of `db`. */
export async function healthFacts(db: Database, tx: Tx, config: Config): Promise<HealthFacts> {
  const now = await databaseNow(tx);
  const projects = await completeness(tx);
  const slices = countSlices(projects);
  const workers = await storedWorkers(tx);
  const causes = slices.failed > 0 ? await failureCauses(tx) : [];
  // If no worker runs, nothing is retried.
  const isRetried = workers.some(({ recent }) => recent);
  return {
    readAt: now,
    callPauses: await storedPauses(tx),
    jobs: await jobHealth(tx, config, projects, now),
    ...{ workers, projects, slices },
    causes: causes.map((cause) => ({ ...cause, isRetried: isRetried && cause.isRetried })),
    rotations: await rotationHealth(tx, config.rotations),
    lists: await configuredLists(tx, config),
    ...(await usageFacts(db, tx, config)),
  };
}

/** A list whose entry was removed from the configuration is of no interest any more. */
async function configuredLists(tx: Tx, { discovery }: Config): Promise<readonly StoredList[]> {
  if (discovery.length === 0) return [];
  const configured = new Set(discovery.map(listOf));
  return (await storedLists(tx)).filter(({ list }) => configured.has(list));
}

/** Budgets and anomalies take longer to read the more usage is stored. If that exceeds the time limit, the other facts are still known. */
async function usageFacts(db: Database, tx: Tx, config: Config) {
  const read = await tryWithin(tx, async () => ({
    budgets: await watchedBudgets(db, tx),
    anomalies: config.anomalies.sensitivity === "off" ? [] : await openAnomalies(tx),
  }));
  return "value" in read ? read.value : { budgets: [], anomalies: [], notRead: errorText(read.error) };
}
