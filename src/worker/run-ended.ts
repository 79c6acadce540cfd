// Reports that a run ended: in the metrics, and in the log or, on a terminal, in a line for a person.

import { counted } from "../monitor/notice-texts.ts";
import type { RunCounts } from "../usage/export.ts";
import type { WorkerWorld } from "./world.ts";

export type EndedRun = {
  readonly kind: "export" | "rotation";
  readonly job: string;
  readonly trigger: string;
  readonly status: string;
  readonly runId?: string;
  readonly seconds?: number;
  /** The first error of the run. */
  readonly error?: string | null | undefined;
  /** Set for an export. */
  readonly counts?: RunCounts;
  /** Set for a rotation: its actions, in order. */
  readonly did?: readonly string[];
};

export function tellRunEnded({ app, metrics }: Pick<WorkerWorld, "app" | "metrics">, run: EndedRun): void {
  metrics.runEnded(run);
  if (app.terminal) {
    app.write(`${runLine(run, new Date())}\n`);
    return;
  }
  const { counts, error, ...rest } = run;
  const facts = { ...rest, ...counts, ...(error != null && { error }) };
  if (run.status === "ok") app.log.info(facts, "run finished");
  else app.log.warn(facts, run.status === "skipped" ? "run skipped" : "run finished");
}

export function runLine({ kind, job, trigger, status, seconds, error, counts, did = [] }: EndedRun, at: Date): string {
  const parts = [
    ...(counts ? countParts(counts) : did),
    ...(seconds === undefined ? [] : [seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`]),
  ];
  const reason = error == null ? "" : `: ${error}`;
  const moment = at.toISOString().slice(0, 19).replace("T", " ");
  return `${moment} UTC ${kind} ${job} (${trigger}) ${[status, ...parts].join(", ")}${reason}`;
}

function countParts(counts: RunCounts): readonly string[] {
  const { requests, planned, complete, suspect, failed, undated, stale, rowsChanged } = counts;
  return [
    counted(requests, "request"),
    `${complete} of ${planned} slices complete`,
    ...(suspect > 0 ? [`${suspect} suspect`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(undated > 0 ? [`${undated} undated`] : []),
    ...(stale > 0 ? [`${stale} stale`] : []),
    `${counted(rowsChanged, "row")} changed`,
  ];
}
