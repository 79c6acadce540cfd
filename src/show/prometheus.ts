// The Prometheus metrics of this process and of the health state. Labels hold configured names and words of closed lists, never a secret.

import { collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { worstFirst } from "../facts/coverage.ts";
import type { HealthState } from "../facts/health.ts";
import { type Day, startOfDay } from "../usage/days.ts";

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number | null];

type HealthGauge = {
  readonly help: string;
  readonly labels: string[];
  /** An unknown value, null, gets no sample. */
  readonly samples: (health: HealthState) => readonly Sample[];
};

const startSeconds = (day: Day | null) => (day === null ? null : startOfDay(day).getTime() / 1000);
const NOT_COMPLETE = ["missing", "failed", "suspect"] as const;
const PROJECT = ["project", "source"];

const GAUGES: Readonly<Record<string, HealthGauge>> = {
  condition: {
    help: "1 while `usage-export status` lists the condition; absent otherwise",
    labels: ["name", "subject", "severity"],
    samples: ({ conditions }) => conditions.map(({ name, subject, severity }) => [{ name, subject, severity }, 1]),
  },
  newest_complete_day_timestamp_seconds: {
    help: "Start (midnight UTC) of the newest day up to which no series of the project lacks a day",
    labels: PROJECT,
    samples: ({ projects }) =>
      projects.map(({ project, source, freshThrough }) => [{ project, source }, startSeconds(freshThrough)]),
  },
  incomplete_slices: {
    help: "Slices of the project's series (a day each) that are missing (due and never read), failed or suspect",
    labels: [...PROJECT, "status"],
    samples: ({ projects }) =>
      projects.flatMap(({ project, source, ...counts }) =>
        NOT_COMPLETE.map((status) => [{ project, source, status }, counts[status]] as const),
      ),
  },
  job_last_success_timestamp_seconds: {
    help: "When the newest run that stored everything ended; backfills do not count",
    // Not "job": Prometheus uses that label for the target of a scrape.
    labels: ["kind", "job_name"],
    samples: ({ jobs }) => jobs.map(({ kind, job, lastSuccess }) => [{ kind, job_name: job }, lastSuccess]),
  },
  api_key_age_seconds: {
    help: "How long ago the key in use was requested, or rolled back to by a person",
    labels: ["rotation"],
    samples: ({ rotations }) => rotations.map(({ rotation, ageSeconds }) => [{ rotation }, ageSeconds]),
  },
};

/** With more projects or conditions, only the worst have samples. */
const SAMPLED_MAX = 200;

function limited(health: HealthState): HealthState {
  const rank = ({ severity }: HealthState["conditions"][number]) => (severity === "critical" ? 0 : 1);
  return {
    ...health,
    conditions: health.conditions.toSorted((a, b) => rank(a) - rank(b)).slice(0, SAMPLED_MAX),
    projects: worstFirst(health.projects.filter(({ series }) => series > 0)).slice(0, SAMPLED_MAX),
  };
}

/** A breakdown takes from a tenth of a second to the time limit of an attempt. */
const CALL_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60];

type EndedAttempt = { readonly operation: string; readonly result: string; readonly seconds: number };

export type Metrics = ReturnType<typeof openMetrics>;
export type ProcessMetrics = Omit<Metrics, "scrape">;

/** `schema` is the newest migration; `ready` says whether /readyz answers 200. */
export function openMetrics(build: { readonly version: string; readonly schema: string }, ready: () => boolean) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // These are gauges, and Prometheus reserves names that end in `_total` for counters.
  for (const { name } of registry.getMetricsAsArray())
    if (/^nodejs_active_\w+_total$/.test(name)) registry.removeSingleMetric(name);
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `usage_export_${name}`, help, labelNames, registers });

  const built = { version: build.version, node_version: process.version, schema: build.schema };
  const help = "Always 1. Labels: the version that runs here, its Node version, and the newest migration it knows.";
  gauge("build_info", help, Object.keys(built)).set(built, 1);
  const isReady = gauge("ready", "What /readyz says: 1 if this process can do its work, else 0.");
  const healthRead = gauge(
    "health_read",
    "1 if this scrape could read the health state from the database; else 0, and the metrics of the health state are absent.",
  );
  const healthGauges = Object.entries(GAUGES).map(([name, { help, labels, samples }]) => ({
    metric: gauge(name, `${help}. The same for every replica.`, labels),
    samples,
  }));
  const latency = new Histogram({
    name: "usage_export_service_request_duration_seconds",
    help: "How long an attempt took, with its whole answer, and without the wait for the rate limiter; result: ok, or the code of the error.",
    buckets: CALL_SECONDS,
    labelNames: ["operation", "result"],
    registers,
  });

  return {
    /** `health` is undefined if the health state could not be read. */
    async scrape(health: HealthState | undefined) {
      isReady.set(ready() ? 1 : 0);
      healthRead.set(health ? 1 : 0);
      const shown = health && limited(health);
      for (const { metric, samples } of healthGauges) {
        // Otherwise a project or condition that is gone since the last scrape would keep its sample.
        metric.reset();
        for (const [labels, value] of shown ? samples(shown) : [])
          if (typeof value === "number") metric.set(labels, value);
      }
      return { status: 200, contentType: registry.contentType, body: await registry.metrics() };
    },
    attemptEnded({ seconds, ...labels }: EndedAttempt) {
      latency.observe(labels, seconds);
    },
  };
}
