// Reads the numbers that a monitor shows, all of one moment.

import { seriesFigures } from "./coverage-figures.ts";
import type { Database } from "./database.ts";
import type { Figure } from "./figure.ts";
import { rotationFigures } from "./key-figures.ts";
import { BRIEFLY_SECONDS, readSnapshot } from "./read-snapshot.ts";
import type { Tx } from "./transaction.ts";
import { jobFigures, type MonitoredJob, queueFigures } from "./work-figures.ts";
import { workerFigures } from "./workers.ts";

export async function readMonitorFigures(db: Database, jobs: readonly MonitoredJob[]): Promise<readonly Figure[]> {
  const readAll = async (tx: Tx) => [
    ...(await seriesFigures(tx)),
    ...(await jobFigures(tx, jobs)),
    ...(await rotationFigures(tx)),
    ...(await queueFigures(tx)),
    ...(await workerFigures(tx)),
  ];
  return readSnapshot(db, readAll, BRIEFLY_SECONDS);
}
