// What the database knows, as gauges: the same at each replica, and made anew for each scrape, so that nothing is shown of
// what is gone.

import { Gauge, Registry } from "prom-client";

/** One number that was read from the database. */
export type Figure = {
  /** A name of GAUGES. */
  readonly gauge: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

const SERIES = ["project", "grouping", "filter"] as const;
/** Not "job", which is the name Prometheus gives to what it scrapes. */
const JOB = ["kind", "job_name"] as const;

const GAUGES: Readonly<Record<string, { readonly help: string; readonly labelNames: readonly string[] }>> = {
  newest_complete_day_timestamp_seconds: {
    help: "Midnight UTC at which the newest day begins up to which nothing of the series is missing",
    labelNames: SERIES,
  },
  incomplete_slices: {
    help: "Slices of the series (a day each) that are missing (due and never read), failed or suspect",
    labelNames: [...SERIES, "status"],
  },
  job_last_success_timestamp_seconds: {
    help: "When the newest run of the job ended in which everything was stored, backfills apart",
    labelNames: JOB,
  },
  job_failures: {
    help: "Runs of the job that failed or were interrupted since the last that went well, backfills apart",
    labelNames: JOB,
  },
  job_paused: { help: "1 while the job is paused, else 0", labelNames: JOB },
  job_next_run_timestamp_seconds: {
    help: "When the job is due next; in the past while a moment of its schedule was not taken up; absent while it is paused",
    labelNames: JOB,
  },
  api_key_age_seconds: {
    help: "How long ago the key in use was asked for, or put back by a person",
    labelNames: ["rotation"],
  },
  api_keys: { help: "Keys in the ledger that exist or may exist, by state", labelNames: ["rotation", "state"] },
  api_keys_due_for_removal: { help: "Replaced keys that have rested their days of grace", labelNames: ["rotation"] },
  api_key_fallback: {
    help: "1 where the key in use was refused and the one before it used, in the last 7 days, else 0",
    labelNames: ["rotation"],
  },
  rotation_failed_attempts: { help: "Failures of the rotation since all was well", labelNames: ["rotation"] },
  rotation_needs_attention: {
    help: "1 while the rotation creates nothing more until a person asks for it, else 0",
    labelNames: ["rotation"],
  },
  workers: { help: "Workers that ended a tick, which comes every minute, in the last two minutes", labelNames: [] },
  worker_last_seen_timestamp_seconds: { help: "When any worker ended its newest tick", labelNames: [] },
  queue_jobs: {
    help: "Work in the queue: waiting, retrying (waits for another try), active, or dead (given up in the last 24 hours)",
    labelNames: ["queue", "state"],
  },
};

export function figuresRegistry(figures: readonly Figure[]): Registry {
  const registry = new Registry();
  const gauges = new Map(
    Object.entries(GAUGES).map(([name, { help, labelNames }]) => [
      name,
      new Gauge({
        name: `usage_export_${name}`,
        help: `${help}. The same for every replica.`,
        labelNames,
        registers: [registry],
      }),
    ]),
  );
  for (const { gauge, labels, value } of figures) {
    const known = gauges.get(gauge);
    if (known === undefined) throw new Error(`there is no gauge ${gauge}`);
    known.set(labels, value);
  }
  return registry;
}
