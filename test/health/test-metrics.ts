// Opens the metrics with defaults for everything that a test does not set, and reads the answer to a scrape.

import { pino } from "pino";
import { type Metrics, type MetricsDeps, openMetrics } from "../../src/health/metrics.ts";
import { healthState } from "./sample-health-state.ts";

export type TestMetrics = Metrics & {
  readonly lines: readonly string[];
  /** The lines of a scrape that have samples of our own metrics. */
  readonly samples: () => Promise<readonly string[]>;
};

export function testMetrics(deps: Partial<MetricsDeps> = {}): TestMetrics {
  const lines: string[] = [];
  const metrics = openMetrics({
    log: pino({}, { write: (line) => lines.push(line) }),
    build: { version: "1.2.3", schema: "0006_create_notice" },
    config: () => ({ hash: "0123abcd", rotations: [] }),
    ready: () => true,
    readHealth: async () => healthState({ jobs: [] }),
    ...deps,
  });
  const samples = async () => {
    const { text } = await metrics.scrape();
    return text.split("\n").filter((line) => line.startsWith("usage_export_"));
  };
  return { ...metrics, lines, samples };
}
