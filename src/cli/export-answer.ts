// What a run of an export job answers: a line for a person with the reasons of what failed, or JSON.

import { type ExportResult, pickCounts, type RunCounts } from "../usage/export.ts";
import { describe } from "../usage/export-request.ts";
import type { ExportJob } from "../usage/plan.ts";

export type JobResult = { readonly job: ExportJob; readonly result: ExportResult };

type Failure = Readonly<Record<string, string>>;

export function resultJson({ job, result }: JobResult): RunCounts & {
  readonly job: string;
  readonly failures: readonly Failure[];
} {
  const failures = result.failures.map(({ request, reason }) => ({ ...describe(request), reason }));
  return { job: job.name, ...pickCounts(result), failures };
}

const REASONS_SHOWN_MAX = 5;

export function resultText({ job, result }: JobResult): string {
  const { requests, complete, suspect, failed, undated, stale, rowsChanged } = result;
  const lines = [
    `${job.name}: ${requests} requests, ${complete} slices complete, ${suspect} suspect, ${failed} failed${stale > 0 ? `, ${stale} stale` : ""}; ${rowsChanged} rows changed`,
  ];
  // A service that is down fails every request in the same words.
  const byReason = Map.groupBy(result.failures, ({ reason }) => reason);
  for (const [reason, failures] of [...byReason].slice(0, REASONS_SHOWN_MAX)) {
    const first = failures[0] && Object.values(describe(failures[0].request)).slice(0, 3).join(" / ");
    lines.push(`  failed: ${first}${failures.length > 1 ? ` and ${failures.length - 1} more` : ""}: ${reason}`);
  }
  if (byReason.size > REASONS_SHOWN_MAX)
    lines.push(`  ${byReason.size - REASONS_SHOWN_MAX} more reasons: see bi.coverage`);
  if (suspect > 0) {
    lines.push(
      "  suspect: days that had usage came back empty, or with a fraction of it, and keep it until a run at least an hour later confirms that",
    );
  }
  if (undated > 0) {
    const answers = undated === 1 ? "1 answer carries" : `${undated} answers carry`;
    lines.push(
      `  undated: ${answers} no date and may be of any span; see bi.usage_snapshot, as no usage view has them; check says more`,
    );
  }
  if (stale > 0) lines.push("  stale: an answer that was asked for later is there already, and this one was dropped");
  return `${lines.join("\n")}\n`;
}
