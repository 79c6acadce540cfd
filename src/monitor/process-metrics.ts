// What this process does, as counters: they start at 0 with it, and are added up over replicas by whoever reads them.

import { Counter, Histogram, type Registry } from "prom-client";

export type ProcessMetrics = {
  /** A run that this process ended. */
  readonly runEnded: (run: {
    readonly kind: string;
    readonly job: string;
    readonly trigger: string;
    readonly status: string;
  }) => void;
  readonly rowsChanged: (job: string, rows: number) => void;
  /** One attempt of a call of the service. */
  readonly attemptEnded: (attempt: {
    readonly operation: string;
    readonly result: string;
    readonly seconds: number;
    readonly number: number;
  }) => void;
  /** The key in use was refused, and the one before it used. */
  readonly fellBack: (rotation: string) => void;
  readonly ticked: (seconds: number) => void;
  readonly noticed: (to: NoticeTarget, result: "sent" | "failed") => void;
};

export type NoticeTarget = (typeof NOTICE_TARGETS)[number];
const NOTICE_TARGETS = ["webhook", "dead_man"] as const;

/** A breakdown takes from a tenth of a second to the limit of an attempt. */
const CALL_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60];
const TICK_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function openProcessMetrics(registry: Registry, rotations: readonly string[]): ProcessMetrics {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name: `usage_export_${name}_total`, help, labelNames, registers });
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    buckets: number[],
  ) => new Histogram({ name: `usage_export_${name}_duration_seconds`, help, labelNames, buckets, registers });

  const runs = counter("runs", "Runs that ended, by the process that ended them.", [
    "kind",
    "job_name",
    "trigger",
    "status",
  ]);
  const rows = counter("rows_changed", "Stored rows that appeared, changed or went.", ["job_name"]);
  const requests = counter(
    "service_requests",
    "Requests sent to the service, each attempt, by how its answer came: ok, or the code of the error.",
    ["operation", "result"],
  );
  const retries = counter(
    "service_retries",
    "Requests sent to the service again after a failure, of those in usage_export_service_requests_total.",
    ["operation"],
  );
  const latency = histogram(
    "service_request",
    "How long an attempt took, its whole answer included and the wait for its turn not.",
    ["operation"],
    CALL_SECONDS,
  );
  const fallbacks = counter("api_key_fallbacks", "Times that the key in use was refused and the one before it used.", [
    "rotation",
  ]);
  const ticks = histogram("tick", "How long it took to decide what is due.", [], TICK_SECONDS);
  const notices = counter("notices", "Notices to the webhook and pings of the dead man's switch, sent or failed.", [
    "to",
    "result",
  ]);
  // From 0, so that the first one shows as an increase.
  for (const rotation of rotations) fallbacks.inc({ rotation }, 0);
  for (const to of NOTICE_TARGETS) for (const result of ["sent", "failed"]) notices.inc({ to, result }, 0);

  return {
    runEnded: ({ kind, job, trigger, status }) => runs.inc({ kind, job_name: job, trigger, status }),
    rowsChanged: (job, count) => rows.inc({ job_name: job }, count),
    attemptEnded({ operation, result, seconds, number }) {
      requests.inc({ operation, result });
      latency.observe({ operation }, seconds);
      if (number > 1) retries.inc({ operation });
    },
    fellBack: (rotation) => fallbacks.inc({ rotation }),
    ticked: (seconds) => ticks.observe(seconds),
    noticed: (to, result) => notices.inc({ to, result }),
  };
}
