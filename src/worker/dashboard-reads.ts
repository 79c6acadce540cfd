// What the pages of the dashboard, the report file and the weekly report read from the database. A page waits for each read, so each
// statement has a time limit.

import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import {
  BRIEF_READ_SECONDS,
  type ReadOptions,
  type RowCache,
  readByStatements,
  USAGE_READ_SECONDS,
} from "../db/connection/transaction.ts";
import { budgetsIn } from "../db/prices-and-budgets.ts";
import { readAnswer } from "../facts/amounts.ts";
import { changes } from "../facts/changes.ts";
import { coverage } from "../facts/coverage.ts";
import { health } from "../facts/health.ts";
import { readRun, readRuns } from "../facts/jobs.ts";
import { readKeys } from "../facts/keys.ts";
import { costFirst, overview } from "../facts/overview.ts";
import type { Query } from "../facts/scope.ts";
import { comparedPeriod, dayOf, type Window } from "../usage/days.ts";
import { budgetsOf } from "../usage/money.ts";
import type { DashboardDeps, ReportData } from "../web/dashboard/pages.ts";
import type { UsageAnswer } from "../web/dashboard/usage-sections.ts";
import { usageQuestion, type View } from "../web/question.ts";

const REASON_GROUPINGS = ["project", "line_item", "model", "accessor"] as const;
/** How many groups are named among the reasons of a change. */
const REASONS_MAX = 5;

/** Without any of these parameters the page begins with the cost. */
const QUESTION_PARAMETERS = ["metric", "grouping", "filter", "group", "no-value"];

/** The answer, with the reasons of its change unless the question names a filter or a group. */
async function usageAnswer(query: Query, view: View): Promise<UsageAnswer> {
  const question = usageQuestion(view, dayOf(new Date()));
  const isChosen = QUESTION_PARAMETERS.some((name) => view.pageParameters[name] !== undefined);
  const asked = isChosen ? question : await costFirst(query, question);
  const answer = await readAnswer(query, asked);
  const { before, filter, group, ...rest } = asked;
  if (!before || !answer.compared || filter !== undefined || group !== undefined) return { answer, change: undefined };
  const change = await changes(query, { ...rest, before, groupings: REASON_GROUPINGS, limit: REASONS_MAX });
  return { answer, change };
}

/** What is read about usage, cost and completeness is cached. */
export function dashboardReads(
  db: Database,
  config: () => Config,
  cache: RowCache,
): Pick<DashboardDeps, "readHealth" | "read" | "readReport"> {
  const read = <T>(signal: AbortSignal, work: (query: Query) => Promise<T>) =>
    readByStatements(db, work, { signal, cache });
  return {
    readHealth: () => health(db, config(), { secondsMax: BRIEF_READ_SECONDS, cache }),
    read: {
      overview: (view, signal) => read(signal, (query) => overview(query, comparedQuestion(view), dayOf(new Date()))),
      usage: (view, signal) => read(signal, (query) => usageAnswer(query, view)),
      async health(view, signal) {
        const asked = comparedQuestion(view);
        const [covered, runs, keys] = await Promise.all([
          readByStatements(db, (query) => coverage(query, asked), { signal }),
          readRuns(db),
          readKeys(db, config()),
        ]);
        return { coverage: covered, runs, keys };
      },
      run: (view) => readRun(db, view.pageParameters.id ?? ""),
    },
    readReport: (view, signal) => readReportData(db, view, new Date(), { signal, cache }),
  };
}

type Asked = { readonly period: Window; readonly project?: string | undefined };

function comparedQuestion({ period: { start, end }, project }: Asked) {
  const period = { start, end };
  return { period, before: comparedPeriod(period), projects: project === undefined ? undefined : [project] };
}

/** Throws InvalidQuestion if there is no such project. */
export async function readReportData(
  db: Database,
  asked: Asked,
  now: Date,
  { secondsMax = USAGE_READ_SECONDS, signal, cache }: ReadOptions = {},
): Promise<ReportData> {
  const read = (query: Query) => overview(query, comparedQuestion(asked), dayOf(now));
  const shown = await readByStatements(db, read, { secondsMax, signal, cache });
  const budgets = await readAtOneMoment(db, (tx) => budgetsIn(tx, asked.period), secondsMax);
  return { overview: shown, budgets: budgetsOf(budgets, shown.total.question.project) };
}
