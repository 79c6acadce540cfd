// Connects the pages of the dashboard, the report file and the weekly report to the database. A page waits for each read, so each statement
// has a time limit.

import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import {
  BRIEF_READ_SECONDS,
  type ReadOptions,
  type RowCache,
  readAtOneMoment,
  readByStatements,
  USAGE_READ_SECONDS,
} from "../db/connection/transaction.ts";
import { budgetsIn } from "../db/prices-and-budgets.ts";
import { coverage } from "../facts/coverage.ts";
import { health } from "../facts/health.ts";
import { readRun, readRuns } from "../facts/jobs.ts";
import { readKeys } from "../facts/keys.ts";
import { overview } from "../facts/overview.ts";
import type { Query } from "../facts/scope.ts";
import { dayOf } from "../usage/days.ts";
import { budgetsOf } from "../usage/money.ts";
import {
  type AskedDays,
  comparedQuestion,
  type DashboardDeps,
  pageReads,
  type ReportData,
} from "../web/dashboard/pages.ts";

/** What is read about usage, cost and completeness is cached. */
export function dashboardReads(
  db: Database,
  config: () => Config,
  cache: RowCache,
): Pick<DashboardDeps, "readHealth" | "read" | "readReport"> {
  return {
    readHealth: () => health(db, config(), { secondsMax: BRIEF_READ_SECONDS, cache }),
    read: pageReads({
      readByStatements: (read, signal) => readByStatements(db, read, { signal, cache }),
      async readDataHealth(asked, signal) {
        const [covered, runs, keys] = await Promise.all([
          readByStatements(db, (query) => coverage(query, asked), { signal }),
          readRuns(db),
          readKeys(db, config()),
        ]);
        return { coverage: covered, runs, keys };
      },
      readRun: (id) => readRun(db, id),
    }),
    readReport: (view, signal) => readReportData(db, view, new Date(), { signal, cache }),
  };
}

/** Throws InvalidQuestion if there is no such project. */
export async function readReportData(
  db: Database,
  asked: AskedDays,
  now: Date,
  { secondsMax = USAGE_READ_SECONDS, signal, cache }: ReadOptions = {},
): Promise<ReportData> {
  const read = (query: Query) => overview(query, comparedQuestion(asked), dayOf(now));
  const shown = await readByStatements(db, read, { secondsMax, signal, cache });
  const budgets = await readAtOneMoment(db, (tx) => budgetsIn(tx, asked.period), secondsMax);
  return { overview: shown, budgets: budgetsOf(budgets, shown.total.question.project) };
}
