// The Prometheus metrics: of this process, and of the health state. Labels hold only names from the configuration, and words of
// closed lists, never a secret, an id or the text of an error.

import type { Logger } from "pino";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { ReadTimeout, shareInFlight } from "../async.ts";
import { isStatementTimeout } from "../db/connection/errors.ts";
import { errorText } from "../errors.ts";
import { GAUGES, type MetricSample, metricSamples } from "./gauges.ts";
import type { HealthFigures } from "./state.ts";

export type MetricsDeps = {
  readonly log: Logger;
  /** What runs here; `schema` is the newest migration. */
  readonly build: { readonly version: string; readonly schema: string };
  /** The configuration in force, read at each scrape. Its hash shows whether replicas have the same one. */
  readonly config: () => {
    readonly hash: string;
    readonly rotations: readonly { readonly name: string }[];
  };
  /** Whether /readyz answers 200. */
  readonly ready: () => boolean;
  readonly readHealth: () => Promise<HealthFigures>;
};

export type Metrics = ProcessMetrics & {
  readonly scrape: () => Promise<{ readonly contentType: string; readonly text: string }>;
};

/** Half of the time that Prometheus waits for the answer to a scrape. */
const DATABASE_MS_MAX = 5_000;
/** Default gauges whose names end in `_total`, which Prometheus reserves for counters. */
const MISNAMED_DEFAULT_METRICS = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

export function openMetrics(deps: MetricsDeps): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED_DEFAULT_METRICS) registry.removeSingleMetric(name);
  const { databaseUp, healthRead } = openProcessGauges(registry, deps);
  const counters = openProcessMetrics(registry, () => deps.config().rotations.map(({ name }) => name));
  const read = shareInFlight(deps.readHealth, DATABASE_MS_MAX);
  let wasUp = true;

  async function scrape() {
    const reading = await read();
    if (!reading.ok && wasUp) {
      deps.log.warn({ reason: errorText(reading.error) }, "metrics without the database");
    }
    wasUp = reading.ok;
    healthRead.set(reading.ok ? 1 : 0);
    databaseUp.set(reading.ok || (isTooSlow(reading.error) && deps.ready()) ? 1 : 0);
    const merged = reading.ok ? Registry.merge([registry, gaugesRegistry(metricSamples(reading.value))]) : registry;
    return { contentType: merged.contentType, text: await merged.metrics() };
  }
  return { ...counters, scrape };
}

/** The read took too long, so it does not show that the database is away. Only a worker that is ready still gets its answers. */
function isTooSlow(error: unknown): boolean {
  return error instanceof ReadTimeout || isStatementTimeout(error);
}

/** Registers the gauges that describe this process. Returns those that each scrape sets. */
function openProcessGauges(registry: Registry, { build, config, ready }: MetricsDeps) {
  const gauge = (name: string, help: string, ...labelNames: readonly string[]) =>
    new Gauge<string>({ name: `usage_export_${name}`, help, labelNames, registers: [registry] });
  const { version, schema } = build;
  gauge(
    "build_info",
    "Always 1: the version that runs here, on which Node, and the newest migration it knows.",
    ...["version", "node_version", "schema"],
  ).set({ version, node_version: process.version, schema }, 1);
  new Gauge({
    name: "usage_export_config_info",
    help: "Always 1: a hash of the configuration that runs here.",
    labelNames: ["hash"],
    registers: [registry],
    collect() {
      this.reset();
      this.set({ hash: config().hash }, 1);
    },
  });
  new Gauge({
    name: "usage_export_ready",
    help: "What /readyz says: 1 if this process can do its work, else 0.",
    registers: [registry],
    collect() {
      this.set(ready() ? 1 : 0);
    },
  });
  return {
    databaseUp: gauge("database_up", "1 if the database answers, else 0."),
    healthRead: gauge(
      "health_read",
      "1 if this scrape could read the health state from the database, else 0; the metrics of it are absent then.",
    ),
  };
}

// Counters and histograms of this process: they start at 0 with it.

export type ProcessMetrics = {
  /** Counts a run that this process ended. */
  readonly runEnded: (run: {
    readonly kind: string;
    readonly job: string;
    readonly trigger: string;
    readonly status: string;
  }) => void;
  readonly rowsChanged: (job: string, rows: number) => void;
  /** Counts one attempt of a call of the service. */
  readonly attemptEnded: (attempt: {
    readonly operation: string;
    readonly result: string;
    readonly seconds: number;
    readonly number: number;
  }) => void;
  /** The service refused the key in use, and the previous key was used. */
  readonly keyFallback: (rotation: string) => void;
  readonly tickEnded: (seconds: number) => void;
  readonly notificationEnded: (to: NotificationTarget, result: "sent" | "failed") => void;
  /** A changed configuration was taken up, or refused. */
  readonly configReloaded: (result: ReloadResult) => void;
};

export type NotificationTarget = (typeof NOTIFICATION_TARGETS)[number];
const NOTIFICATION_TARGETS = ["webhook", "dead_man"] as const;

export type ReloadResult = (typeof RELOAD_RESULTS)[number];
const RELOAD_RESULTS = ["taken", "refused"] as const;

/** Buckets of a histogram: a breakdown takes from a tenth of a second to the time limit of an attempt. */
const CALL_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60];
const TICK_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

function openProcessMetrics(registry: Registry, rotations: () => readonly string[]): ProcessMetrics {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, ...labelNames: readonly Label[]) =>
    new Counter({ name: `usage_export_${name}_total`, help, labelNames, registers });
  const histogram = <Label extends string>(name: string, help: string, buckets: number[], ...labelNames: Label[]) =>
    new Histogram({ name: `usage_export_${name}_duration_seconds`, help, labelNames, buckets, registers });

  const runs = counter(
    "runs",
    "Runs that ended, by the process that ended them.",
    ...(["kind", "job_name", "trigger", "status"] as const),
  );
  const rows = counter("rows_changed", "Stored rows that appeared, changed or were removed.", "job_name");
  const requests = counter(
    "service_requests",
    "Attempts of requests to the service, by result: ok, or the code of the error.",
    ...(["operation", "result"] as const),
  );
  const retries = counter(
    "service_retries",
    "Attempts after a failure, of those in usage_export_service_requests_total.",
    "operation",
  );
  const latency = histogram(
    "service_request",
    "How long an attempt took, with its whole answer, and without the wait for the rate limiter.",
    CALL_SECONDS,
    "operation",
  );
  const fallbacks = new Counter({
    name: "usage_export_api_key_fallbacks_total",
    help: "Times that the service refused the key in use and the previous key was used.",
    labelNames: ["rotation"],
    registers,
    // These counters start at 0, so that Prometheus sees an increase when the first event is counted.
    collect() {
      for (const rotation of rotations()) this.inc({ rotation }, 0);
    },
  });
  const ticks = histogram("tick", "How long a tick took.", TICK_SECONDS);
  const notifications = counter(
    "notices",
    "Notifications to the webhook and pings of the dead man's switch, sent or failed.",
    ...(["to", "result"] as const),
  );
  const reloads = counter(
    "config_reloads",
    "Times that a changed configuration was taken up, or refused because it is wrong.",
    "result",
  );
  for (const result of RELOAD_RESULTS) reloads.inc({ result }, 0);
  for (const to of NOTIFICATION_TARGETS) for (const result of ["sent", "failed"]) notifications.inc({ to, result }, 0);

  return {
    runEnded: ({ kind, job, trigger, status }) => runs.inc({ kind, job_name: job, trigger, status }),
    rowsChanged: (job, count) => rows.inc({ job_name: job }, count),
    attemptEnded({ operation, result, seconds, number }) {
      requests.inc({ operation, result });
      latency.observe({ operation }, seconds);
      if (number > 1) retries.inc({ operation });
    },
    keyFallback: (rotation) => fallbacks.inc({ rotation }),
    tickEnded: (seconds) => ticks.observe(seconds),
    notificationEnded: (to, result) => notifications.inc({ to, result }),
    configReloaded: (result) => reloads.inc({ result }),
  };
}

// The gauges of the health state are created again for each scrape, so that removed series and jobs disappear.

function gaugesRegistry(samples: readonly MetricSample[]): Registry {
  const registry = new Registry();
  for (const [name, { help, labelNames }] of Object.entries(GAUGES)) {
    const gauge = new Gauge({
      name: `usage_export_${name}`,
      help: `${help}. The same for every replica.`,
      labelNames,
      registers: [registry],
    });
    for (const { labels, value } of samples.filter((one) => one.gauge === name)) gauge.set(labels, value);
  }
  return registry;
}
