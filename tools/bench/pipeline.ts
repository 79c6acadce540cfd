// A whole export in this process: plan, calls, storing and the run's record, but not the start of the program.

import { openApp } from "../../src/app.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { openExportContext } from "../../src/jobs/context.ts";
import { executePlan } from "../../src/jobs/export.ts";
import { withDatabase } from "../../src/open-database.ts";
import { dayOf } from "../../src/usage/days.ts";
import { planRun } from "../../src/usage/export-plan.ts";
import type { Grouping } from "../../src/usage/series.ts";
import { openConfigFolder } from "./config-folder.ts";
import { prepareDatabase } from "./prepared-database.ts";

export const GROUPINGS = ["accessor", "model", "tags", "feature_set"] as const;
export const KEY = "0123456789abcdef0123456789abcdef01234567";

export type Workload = {
  readonly projects: number;
  /** GROUPINGS if left out. */
  readonly groupings?: readonly Grouping[];
  readonly filters?: number;
  readonly days: number;
  readonly cap: number;
};

/** A configuration of `projects` projects, the groupings and `filters` filters, in which each combination is read by one request. */
export function configOf(
  service: string,
  { projects, groupings = GROUPINGS, filters = 1, days, cap }: Workload,
): object {
  const conditions = Array.from({ length: filters }, (_, i) => ({
    name: `filter-${i}`,
    dimensions: { accessor: `a-${i}` },
  }));
  const ids = Array.from({ length: projects }, (_, i) => `project-${i}`);
  return {
    service: { baseUrl: service, dialect: "interface", requestsPerSecond: 10_000, maxConcurrent: cap },
    projects: ids.map((id) => ({ id, name: id, key: { env: "KEY" } })),
    exports: [
      {
        name: "bench",
        schedule: "0 2 * * *",
        projects: ids,
        window: { days },
        groupings,
        checkFeatures: "off",
        filters: conditions,
      },
    ],
  };
}

/** Migrates the database and passes `work` a function that runs the configured job and throws if a request failed. */
export async function withPipeline<T>(
  config: object,
  databaseUrl: string,
  work: (run: () => Promise<void>, db: Database) => Promise<T>,
): Promise<T> {
  await using opened = await openConfigFolder(config);
  await (await prepareDatabase(databaseUrl, config)).db.destroy();
  const env = { DATABASE_URL: databaseUrl, LOG_LEVEL: "error", KEY };
  const app = await openApp(env, opened.file, new AbortController().signal);
  const loaded = await loadConfig(app.configPath);
  return await withDatabase(app, async (db) => {
    await using context = await openExportContext(app, loaded, db);
    const run = async () => {
      for (const job of loaded.exports) {
        const { failures } = await executePlan(context, job, "manual", planRun(job, dayOf(new Date())));
        if (failures[0]) throw new Error(failures[0].reason);
      }
    };
    return await work(run, db);
  });
}
