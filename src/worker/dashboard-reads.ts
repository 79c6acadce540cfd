// What the pages of the dashboard read from the database. A page waits for each, so each statement has a short limit.

import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS } from "../db/connection/transaction.ts";
import { readChangeData, readQualityData, readReportData, readUsageData } from "../db/report/report.ts";
import { readKeys, readRun, readRuns } from "../health/operations.ts";
import { readHealth } from "../health/read-health.ts";
import type { DashboardDeps } from "../web/dashboard/dashboard.ts";
import { keyFilterOf, requestFilterOf, runFilterOf } from "../web/dashboard/lists.ts";
import { comparedWindow, type View } from "../web/dashboard/view.ts";

const statementSecondsMax = BRIEF_SNAPSHOT_SECONDS;

/** The forecast takes two milliseconds a project, beside the other parts of a page. */
const forecastProjectsMax = 200;

/** Comparing two months of 500 projects takes a second, beside the other parts of a page. */
const changeProjectsMax = 500;

export function dashboardReads(
  db: Database,
  config: () => Config,
): Pick<DashboardDeps, "readHealth" | "read" | "readReport"> {
  const question = (view: View) => ({ period: view.period, before: comparedWindow(view), project: view.project });
  return {
    readHealth: () => readHealth(db, config(), { statementSecondsMax }),
    read: {
      overview: (view, options) =>
        readUsageData(db, question(view), {
          ...options,
          ...{ statementSecondsMax, forecastProjectsMax },
          breakdowns: ["model"],
          rankings: ["model", "accessor", "tags"],
        }),
      cost: (view, options) =>
        readChangeData(db, question(view), { ...options, statementSecondsMax, changeProjectsMax }),
      quality: (view, options) => readQualityData(db, question(view), { ...options, statementSecondsMax }),
      jobs: (view) => readRuns(db, runFilterOf(view)),
      async run(view) {
        const filter = requestFilterOf(view);
        return view.id === undefined ? undefined : readRun(db, view.id, filter);
      },
      keys: (view) => readKeys(db, config(), keyFilterOf(view)),
    },
    readReport: (view, now, options) =>
      readReportData(db, view.period, now, {
        ...{ ...options, before: comparedWindow(view) },
        ...{ statementSecondsMax, forecastProjectsMax, changeProjectsMax },
      }),
  };
}
