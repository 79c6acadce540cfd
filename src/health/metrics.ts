// The Prometheus metrics: of this process, and of the health state. Labels hold only names from the configuration or of snoozes, and words of
// closed lists, never a secret, an id or the text of an error.

import type { Logger } from "pino";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { ReadTimeout, shareInFlight } from "../async.ts";
import { isStatementTimeout } from "../db/connection/errors.ts";
import type { SeriesHealth } from "../db/health.ts";
import { errorText } from "../errors.ts";
import { needsAttention } from "../keys/plan.ts";
import type { BudgetUse } from "../usage/budget-use.ts";
import { DAY_SECONDS, startOfDay } from "../usage/days.ts";
import { openAnomalies } from "./anomaly-alerts.ts";

import type { HealthFigures, JobHealth, RotationHealth } from "./state.ts";

export type MetricsDeps = {
  readonly log: Logger;
  /** What runs here; `schema` is the newest migration. */
  readonly build: { readonly version: string; readonly schema: string };
  /** The configuration in force, read at each scrape. Its hash shows whether replicas have the same one. */
  readonly config: () => {
    readonly hash: string;
    readonly rotations: readonly { readonly name: string; readonly maxAgeDays: number }[];
    readonly isChangeRefused: boolean;
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
  new Gauge({
    name: "usage_export_config_refused",
    help: "1 while the configuration has changed and is wrong, so that this process goes on with the one before, else 0.",
    registers: [registry],
    collect() {
      this.set(config().isChangeRefused ? 1 : 0);
    },
  });
  new Gauge({
    name: "usage_export_api_key_max_age_seconds",
    help: "The configured age at which a key is replaced.",
    labelNames: ["rotation"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name, maxAgeDays } of config().rotations) this.set({ rotation: name }, maxAgeDays * DAY_SECONDS);
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

// Gauges of the health state. Every replica has the same values. They are created again for each scrape, so that removed series and
// jobs disappear.

/** One number of the health state. */
export type MetricSample = {
  readonly gauge: keyof typeof GAUGES;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** A series of usage has no "source". */
const SERIES_LABELS = ["project", "source", "grouping", "filter"] as const;
/** Not "job": Prometheus uses that label for the target of a scrape. */
const JOB_LABELS = ["kind", "job_name"] as const;

const GAUGES = {
  newest_complete_day_timestamp_seconds: {
    help: "Midnight UTC at which the newest day begins up to which nothing of the series is missing",
    labelNames: SERIES_LABELS,
  },
  incomplete_slices: {
    help: "Slices of the series (a day each) that are missing (due and never read), failed or suspect",
    labelNames: [...SERIES_LABELS, "status"],
  },
  job_last_success_timestamp_seconds: {
    help: "When the newest run of the job ended in which everything was stored, without backfills",
    labelNames: JOB_LABELS,
  },
  job_failures: {
    help: "Runs of the job that failed or were interrupted since the last that ended well, without backfills",
    labelNames: JOB_LABELS,
  },
  job_paused: { help: "1 while the job is paused, else 0", labelNames: JOB_LABELS },
  job_next_run_timestamp_seconds: {
    help: "When the job is due next; in the past while no worker has planned a run that is due; absent while it is paused",
    labelNames: JOB_LABELS,
  },
  api_key_age_seconds: {
    help: "How long ago the key in use was requested, or put back by a person",
    labelNames: ["rotation"],
  },
  api_keys: { help: "Keys in the ledger that exist or may exist, by state", labelNames: ["rotation", "state"] },
  api_keys_due_for_removal: { help: "Replaced keys whose grace days are over", labelNames: ["rotation"] },
  api_key_fallback: {
    help: "1 if the service refused the key in use in the last 7 days and the previous key was used, else 0",
    labelNames: ["rotation"],
  },
  rotation_failed_attempts: { help: "Failures of the rotation since its last success", labelNames: ["rotation"] },
  rotation_needs_attention: {
    help: "1 while the rotation creates no key until a person asks for it, else 0",
    labelNames: ["rotation"],
  },
  workers: { help: "Workers that ended a tick, which comes every minute, in the last two minutes", labelNames: [] },
  worker_last_seen_timestamp_seconds: { help: "When any worker ended its newest tick", labelNames: [] },
  usage_anomalies: {
    help: "Open alerts about final days whose usage was unusual",
    labelNames: ["project", "filter"],
  },
  queue_jobs: {
    help: "Usage requests and rotations in the queue: waiting, retrying (waits for another attempt), active, or dead (given up in the last 24 hours)",
    labelNames: ["queue", "state"],
  },
  budget_used_share: {
    help: "Which share of the budget is used in its current period, of the days that were read; 1 where it is used up",
    labelNames: ["budget"],
  },
  budget_forecast_share: {
    help: "Which share of the budget will probably be used by the end of the current month; absent where no forecast is possible",
    labelNames: ["budget"],
  },
  alert_snoozed_until_timestamp_seconds: {
    help: "When the snooze of the alert, or of the alerts whose names begin with it, ends; absent without a snooze",
    labelNames: ["alert"],
  },
} as const satisfies Readonly<Record<string, { readonly help: string; readonly labelNames: readonly string[] }>>;

/** The gauges of a health state. A number that is not known has no sample. */
export function metricSamples({
  series,
  jobs,
  rotations,
  queue,
  workers,
  budgets,
  anomalies,
  snoozes,
}: HealthFigures): readonly MetricSample[] {
  const seen = workers[0]?.lastSeenAt;
  return [
    ...series.filter(({ isActive }) => isActive).flatMap(seriesSamples),
    ...jobs.flatMap(jobSamples),
    ...rotations.flatMap(rotationSamples),
    ...queue.flatMap(({ queue, state, jobs }) => sample("queue_jobs", { queue, state }, jobs)),
    ...budgets.filter(({ isOver }) => !isOver).flatMap(budgetSamples),
    ...anomalies.flatMap((usage) =>
      sample("usage_anomalies", { project: usage.project, filter: usage.filter }, openAnomalies(usage).length),
    ),
    ...snoozes.flatMap(({ name, until }) =>
      sample("alert_snoozed_until_timestamp_seconds", { alert: name }, until.getTime() / 1000),
    ),
    ...sample("workers", {}, workers.filter(({ state }) => state === "live").length),
    ...sample("worker_last_seen_timestamp_seconds", {}, seen && seen.getTime() / 1000),
  ];
}

function seriesSamples({ freshThrough, missing, failed, suspect, ...series }: SeriesHealth) {
  const { project, source, grouping, filter } = series;
  const labels = { project, ...(source !== "usage" && { source }), grouping, filter };
  const fresh = freshThrough === null ? null : startOfDay(freshThrough).getTime() / 1000;
  return [
    ...sample("newest_complete_day_timestamp_seconds", labels, fresh),
    ...Object.entries({ missing, failed, suspect }).flatMap(([status, slices]) =>
      sample("incomplete_slices", { ...labels, status }, slices),
    ),
  ];
}

function jobSamples({ kind, job, lastSuccess, failures, paused, firstUnplanned }: JobHealth) {
  const labels = { kind, job_name: job };
  return [
    ...sample("job_last_success_timestamp_seconds", labels, lastSuccess),
    ...sample("job_failures", labels, failures),
    ...sample("job_paused", labels, paused ? 1 : 0),
    ...sample("job_next_run_timestamp_seconds", labels, firstUnplanned && firstUnplanned.getTime() / 1000),
  ];
}

function rotationSamples({ rotation, ageSeconds, failedAttempts, fallback, keys }: RotationHealth) {
  const { dueForRemoval, longDue: _, ...byState } = keys;
  return [
    ...sample("api_key_age_seconds", { rotation }, ageSeconds),
    ...Object.entries(byState).flatMap(([state, count]) => sample("api_keys", { rotation, state }, count)),
    ...sample("api_keys_due_for_removal", { rotation }, dueForRemoval),
    ...sample("api_key_fallback", { rotation }, fallback === null ? 0 : 1),
    ...sample("rotation_failed_attempts", { rotation }, failedAttempts),
    ...sample("rotation_needs_attention", { rotation }, needsAttention(failedAttempts) ? 1 : 0),
  ];
}

/** A metric is a double by its format: these are shares for charts and alert rules, and bi.budgets has the amounts. */
function budgetSamples({ name, percent, forecastPercent }: BudgetUse) {
  const share = (text: string | null) => (text === null ? null : Number(text) / 100);
  return [
    ...sample("budget_used_share", { budget: name }, share(percent)),
    ...sample("budget_forecast_share", { budget: name }, share(forecastPercent)),
  ];
}

function sample(
  gauge: MetricSample["gauge"],
  labels: MetricSample["labels"],
  value: number | null | undefined,
): readonly MetricSample[] {
  return value === null || value === undefined ? [] : [{ gauge, labels, value }];
}

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
