import { type App, openServiceOf, readConfig, withDatabase } from "../app.ts";
import { openKeyRing, requireStaticKeys } from "../jobs/keys-in-use.ts";
import { countsOf, runExportJob } from "../jobs/run-export.ts";
import { dayOf } from "../usage/day.ts";
import { describe, type ExportResult } from "../usage/export.ts";
import type { ExportJob } from "../usage/plan.ts";
import { progressLine } from "./progress.ts";
import { chooseJobs, type SelectionOptions } from "./selection.ts";

export type ExportOptions = SelectionOptions & { readonly json?: boolean };

export async function runExport(app: App, options: ExportOptions): Promise<number> {
  const config = await readConfig(app);
  const { jobs, selection } = chooseJobs(config, options, dayOf(new Date()));
  // Before anything is called: a variable that is not set must not cost half a night.
  await requireStaticKeys(app, config);
  const service = await openServiceOf(app, config);
  try {
    return await withDatabase(app, async (db) => {
      const keys = await openKeyRing(app, config, db);
      const results: { readonly job: ExportJob; readonly result: ExportResult }[] = [];
      for (const job of jobs) {
        const progress = progressLine(job.name, app.terminal, (text) => process.stderr.write(text));
        const context = { app, config, db, service, keys, onProgress: progress.show };
        try {
          results.push({ job, result: await runExportJob(context, job, "manual", selection) });
        } finally {
          progress.clear();
        }
      }
      app.write(options.json ? `${JSON.stringify(results.map(toJson))}\n` : results.map(toText).join(""));
      return results.every(({ result }) => result.failed + result.suspect === 0) ? 0 : 1;
    });
  } finally {
    await service.close();
  }
}

function toJson({ job, result }: { readonly job: ExportJob; readonly result: ExportResult }) {
  const failures = result.failures.map(({ request, reason }) => ({ ...describe(request), reason }));
  return { job: job.name, ...countsOf(result), failures };
}

const REASONS_SHOWN_MAX = 5;

function toText({ job, result }: { readonly job: ExportJob; readonly result: ExportResult }): string {
  const { requests, complete, suspect, failed, rowsChanged } = result;
  const lines = [
    `${job.name}: ${requests} requests, ${complete} slices complete, ${suspect} suspect, ${failed} failed; ${rowsChanged} rows changed`,
  ];
  // A service that is down fails every request in the same words.
  const byReason = Map.groupBy(result.failures, ({ reason }) => reason);
  for (const [reason, failures] of [...byReason].slice(0, REASONS_SHOWN_MAX)) {
    const first = failures[0] && Object.values(describe(failures[0].request)).slice(0, 3).join(" / ");
    lines.push(`  failed: ${first}${failures.length > 1 ? ` and ${failures.length - 1} more` : ""}: ${reason}`);
  }
  if (byReason.size > REASONS_SHOWN_MAX)
    lines.push(`  ${byReason.size - REASONS_SHOWN_MAX} more reasons: see bi.coverage`);
  if (suspect > 0) lines.push("  suspect: days that had usage came back empty and keep it until the next run confirms");
  return `${lines.join("\n")}\n`;
}
