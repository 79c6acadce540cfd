// How a project of a run ends, and how the end of a run is reported: in the log or, on a terminal, in a line for a person.

import type { ProjectEnd, RunEnd } from "../db/jobs/runs.ts";
import { counted, durationText, instantText } from "../show/format.ts";
import type { WorkerContext } from "./context.ts";

/** Ends the project and, with its last project, the run, which is then reported. */
export async function endProject(context: WorkerContext, { error, ...project }: ProjectEnd): Promise<void> {
  const run = await context.writer.endProject({ ...project, error: error && context.app.scrubber.scrub(error) });
  // Each project of a rotation was reported with its actions.
  if (run?.kind === "export") reportRunEnd(context, run);
}

/** A rotation has no counts; `did` are its actions, in order. */
export type EndedRun = Pick<RunEnd, "kind" | "job" | "trigger" | "status"> &
  Partial<RunEnd> & { readonly did?: readonly string[] };

export function reportRunEnd({ app }: Pick<WorkerContext, "app">, run: EndedRun): void {
  const { counts, error, ...rest } = run;
  const facts = { ...rest, ...counts, ...(error != null && { error }) };
  if (app.terminal) app.write(`${runLine(run, new Date())}\n`);
  else app.log[run.status === "ok" ? "info" : "warn"](facts, "run finished");
}

export function runLine({ kind, job, trigger, status, seconds, error, counts, did = [] }: EndedRun, at: Date): string {
  const parts = counts
    ? [
        counted(counts.requests, "request"),
        `${counts.complete} of ${counts.planned} slices complete`,
        `${counted(counts.rowsChanged, "row")} changed`,
      ]
    : did;
  const time = seconds === undefined ? [] : [durationText(seconds)];
  const reason = error == null ? "" : `: ${error}`;
  return `${instantText(at)} ${kind} ${job} (${trigger}) ${[status, ...parts, ...time].join(", ")}${reason}`;
}
