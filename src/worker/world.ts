// What the parts of a worker share.

import type { Config } from "../config/config.ts";
import type { Queue } from "../db/queue.ts";
import type { SeriesIds } from "../db/series.ts";
import type { ExportWorld } from "../jobs/export-deps.ts";
import type { MasterKeys } from "../keys/seal.ts";
import type { ProcessMetrics } from "../monitor/process-metrics.ts";

/** The signal of its app ends work in hand; that the worker is to stop is known before. */
export type WorkerWorld = ExportWorld & {
  readonly config: Config;
  readonly queue: Queue;
  readonly ids: SeriesIds;
  /** Undefined where there is no rotation. */
  readonly masterKeys: MasterKeys | undefined;
  readonly metrics: ProcessMetrics;
};
