// What a scrape answers: what this process is and did, and what the database knows. Never a secret, an id or the text of an
// error: labels hold names of the configuration and words of closed lists.

import type { Logger } from "pino";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { errorText } from "../errors.ts";
import { type Figure, figuresRegistry } from "./gauges.ts";
import { openProcessMetrics, type ProcessMetrics } from "./process-metrics.ts";
import { shareReading } from "./shared-reading.ts";

export type MetricsDeps = {
  readonly log: Logger;
  /** What runs here; `schema` is the newest migration. */
  readonly build: { readonly version: string; readonly schema: string };
  /** Of the configuration, to see whether replicas have the same. */
  readonly configHash: string;
  readonly rotations: readonly { readonly name: string; readonly maxAgeDays: number }[];
  /** What /readyz says. */
  readonly ready: () => boolean;
  readonly readFigures: () => Promise<readonly Figure[]>;
};

export type Metrics = ProcessMetrics & {
  readonly scrape: () => Promise<{ readonly contentType: string; readonly text: string }>;
};

/** Half of what Prometheus waits for a scrape. */
const DATABASE_MS_MAX = 5_000;
const DAY_SECONDS = 24 * 60 * 60;
/** Counts that are no counters by type and yet are called `_total`: names that Prometheus keeps for counters. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

export function openMetrics(deps: MetricsDeps): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  describeProcess(registry, deps);
  const databaseUp = new Gauge({
    name: "usage_export_database_up",
    help: "1 where this scrape could read the database, else 0; what is read from it is absent then.",
    registers: [registry],
  });
  const counts = openProcessMetrics(
    registry,
    deps.rotations.map(({ name }) => name),
  );
  const read = shareReading(deps.readFigures, DATABASE_MS_MAX);
  let wasUp = true;

  async function scrape() {
    const reading = await read();
    if (!reading.ok && wasUp) {
      deps.log.warn({ reason: errorText(reading.error) }, "metrics without the database");
    }
    wasUp = reading.ok;
    databaseUp.set(reading.ok ? 1 : 0);
    const whole = reading.ok ? Registry.merge([registry, figuresRegistry(reading.value)]) : registry;
    return { contentType: whole.contentType, text: await whole.metrics() };
  }
  return { ...counts, scrape };
}

function describeProcess(registry: Registry, { build, configHash, rotations, ready }: MetricsDeps): void {
  const registers = [registry];
  new Gauge({
    name: "usage_export_build_info",
    help: "Always 1: the version that runs here, on which Node, and the newest migration it knows.",
    labelNames: ["version", "node_version", "schema"],
    registers,
  }).set({ version: build.version, node_version: process.version, schema: build.schema }, 1);
  new Gauge({
    name: "usage_export_config_info",
    help: "Always 1: a hash of the configuration that runs here.",
    labelNames: ["hash"],
    registers,
  }).set({ hash: configHash }, 1);
  new Gauge({
    name: "usage_export_ready",
    help: "What /readyz says: 1 where this process can do its work, else 0.",
    registers,
    collect() {
      this.set(ready() ? 1 : 0);
    },
  });
  const maxAge = new Gauge({
    name: "usage_export_api_key_max_age_seconds",
    help: "The configured age at which a key is replaced.",
    labelNames: ["rotation"],
    registers,
  });
  for (const { name, maxAgeDays } of rotations) maxAge.set({ rotation: name }, maxAgeDays * DAY_SECONDS);
}
