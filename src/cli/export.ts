import { type App, readConfig, withDatabase } from "../app.ts";
import { forgetOldRuns } from "../db/runs.ts";
import { withExportContext } from "../jobs/export-context.ts";
import { requireStaticKeys } from "../jobs/keys-in-use.ts";
import { dayOf } from "../usage/day.ts";
import { type JobResult, resultJson, resultText } from "./export-answer.ts";
import { runNow } from "./run-now.ts";
import { chooseJobs, type SelectionOptions } from "./selection.ts";

export type ExportOptions = SelectionOptions & { readonly json?: boolean };

export async function runExport(app: App, options: ExportOptions): Promise<number> {
  const config = await readConfig(app);
  const { jobs, selection } = chooseJobs(config, options, dayOf(new Date()));
  // Before anything is called: a variable that is not set must not cost half a night.
  await requireStaticKeys(app, config);
  const results: JobResult[] = [];
  await withDatabase(app, (db) =>
    withExportContext(app, config, db, async (context) => {
      for (const job of jobs)
        results.push({ job, result: await runNow(context, job, { trigger: "manual", selection }) });
      // If another scheduler runs this command and no worker runs, nothing else deletes old runs.
      await forgetOldRuns(db, config.runs.keepDays, new Date());
    }),
  );
  app.write(options.json ? `${JSON.stringify(results.map(resultJson))}\n` : results.map(resultText).join(""));
  return results.every(({ result }) => result.failed + result.suspect === 0) ? 0 : 1;
}
