// What the pages of the dashboard read from the database. A page waits for each, so each statement has a short limit.

import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { BRIEF_SNAPSHOT_SECONDS, readByStatements, readSnapshot } from "../db/connection/transaction.ts";
import { budgetsIn } from "../db/money.ts";
import { coverage } from "../facts/coverage.ts";
import { health } from "../facts/health.ts";
import { readKeys, readRun, readRuns } from "../facts/operations.ts";
import { overview } from "../facts/overview.ts";
import type { Question } from "../facts/question.ts";
import { restatements } from "../facts/restatements.ts";
import type { Run } from "../facts/scope.ts";
import { dayOf } from "../usage/days.ts";
import type { DashboardDeps } from "../web/dashboard/dashboard.ts";
import { keyFilterOf, projectFilterOf, runFilterOf } from "../web/dashboard/lists.ts";
import type { ReportData } from "../web/dashboard/report-file.ts";
import { comparedWindow, type View } from "../web/dashboard/view.ts";

const statementSecondsMax = BRIEF_SNAPSHOT_SECONDS;

export function dashboardReads(
  db: Database,
  config: () => Config,
): Pick<DashboardDeps, "readHealth" | "read" | "readReport"> {
  const question = ({ period: { start, end }, compare, project }: View) => ({
    period: { start, end },
    before: comparedWindow({ period: { start, end, live: false, name: undefined }, compare }),
    projects: project === undefined ? undefined : [project],
  });
  const read = <T>(signal: AbortSignal, work: (run: Run) => Promise<T>) => readByStatements(db, work, { signal });
  return {
    readHealth: () => health(db, config(), { statementSecondsMax }),
    read: {
      overview: (view, signal) => read(signal, (run) => overview(run, question(view), dayOf(new Date()))),
      async health(view, signal) {
        const asked = question(view);
        const [ofUsage, runs, keys] = await Promise.all([
          read(signal, async (run) => ({
            coverage: await coverage(run, asked),
            restatements: await restatements(run, asked),
          })),
          readRuns(db, runFilterOf(view)),
          readKeys(db, config(), keyFilterOf(view)),
        ]);
        return { ...ofUsage, runs, keys };
      },
      async run(view) {
        const filter = projectFilterOf(view);
        return view.id === undefined ? undefined : readRun(db, view.id, filter);
      },
    },
    readReport: (view, signal) => readReportData(db, question(view), new Date(), { signal }),
  };
}

/** Throws InvalidQuestion if there is no such project. */
export async function readReportData(
  db: Database,
  question: Pick<Question, "period" | "before" | "projects">,
  now: Date,
  { secondsMax = statementSecondsMax, signal }: { readonly secondsMax?: number; readonly signal?: AbortSignal } = {},
): Promise<ReportData> {
  const read = await readByStatements(db, (run) => overview(run, question, dayOf(now)), { secondsMax, signal });
  const budgets = await readSnapshot(db, (tx) => budgetsIn(db, tx, question.period), secondsMax);
  const isOfProject = question.projects !== undefined;
  // A budget of more projects than the report is of would say what the others used.
  const ids = read.total.question.project;
  return {
    ...{ overview: read, isOfProject },
    budgets: isOfProject ? budgets.filter(({ projectIds }) => projectIds.every((id) => id === ids)) : budgets,
  };
}
