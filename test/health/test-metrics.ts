// Opens the metrics with defaults for everything that a test does not set, and reads the answer to a scrape.

import { pino } from "pino";
import type { HealthState } from "../../src/facts/health.ts";
import { openMetrics, type ProcessMetrics } from "../../src/show/prometheus.ts";
import { openScrape } from "../../src/worker/monitoring.ts";
import { healthState } from "./sample-health-state.ts";

export type TestMetrics = ProcessMetrics & {
  readonly logLines: readonly string[];
  readonly scrape: ReturnType<typeof openScrape>;
  /** The lines of a scrape that are samples of the program's own metrics, without comments and the metrics of Node.js. */
  readonly samples: () => Promise<readonly string[]>;
};

export function testMetrics({
  ready = (): boolean => true,
  readHealth = async (): Promise<HealthState> => healthState({ jobs: [] }),
} = {}): TestMetrics {
  const logLines: string[] = [];
  const log = pino({}, { write: (line) => logLines.push(line) });
  const metrics = openMetrics({ version: "1.2.3", schema: "0006_create_notice" }, ready);
  const scrape = openScrape(log, metrics, readHealth);
  const samples = async () => (await scrape()).body.split("\n").filter((line) => line.startsWith("usage_export_"));
  return { ...metrics, logLines, scrape, samples };
}
