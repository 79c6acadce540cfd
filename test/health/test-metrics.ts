// Opens the metrics, with everything filled in that a test does not care about, and reads what a scrape answers.

import { pino } from "pino";
import { type Metrics, type MetricsDeps, openMetrics } from "../../src/health/metrics.ts";
import { healthState } from "./sample-health-state.ts";

export type TestMetrics = Metrics & {
  readonly lines: readonly string[];
  /** The samples of our own metrics, as they stand in the answer. */
  readonly samples: () => Promise<readonly string[]>;
};

export function testMetrics(deps: Partial<MetricsDeps> = {}): TestMetrics {
  const lines: string[] = [];
  const metrics = openMetrics({
    log: pino({}, { write: (line) => lines.push(line) }),
    build: { version: "1.2.3", schema: "0006_create_notice" },
    configHash: "0123abcd",
    rotations: [],
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
