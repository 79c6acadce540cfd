// Answers the requests for the page Usage & cost.

import { amounts } from "../../facts/amounts.ts";
import { type Change, changes } from "../../facts/changes.ts";
import { InvalidQuestion, type Question } from "../../facts/question.ts";
import type { Run } from "../../facts/scope.ts";
import { dayOf } from "../../usage/days.ts";
import type { Dashboard } from "../dashboard/dashboard.ts";
import type { Answer } from "../page.ts";
import { givenParameters, ownParameters, PageParameters, parseParameters, questionOf, viewOf } from "./question.ts";

type UsagePageDeps = Pick<Dashboard, "framed"> & {
  readonly readByStatements: <T>(read: (run: Run) => Promise<T>, signal: AbortSignal) => Promise<T>;
};

const REASON_SPLITS = ["project", "line_item", "model", "accessor"] as const;
/** How many groups a table of changes lists. */
const REASONS_MAX = 5;

/** Why the whole rose or fell; undefined of a part of the usage, whose groups say it themselves. */
async function reasons(run: Run, { before, filter, group, ...question }: Question): Promise<Change | undefined> {
  if (!before || filter !== undefined || group !== undefined) return undefined;
  return changes(run, { ...question, before, groupings: REASON_SPLITS, limit: REASONS_MAX });
}

/** Path to answer. */
export function openUsagePage({ framed, readByStatements }: UsagePageDeps): Readonly<Record<string, Answer>> {
  const usagePage: Answer = async (query) => {
    try {
      const [given, today] = [givenParameters(query), dayOf(new Date())];
      const { chart, ...parameters } = parseParameters(PageParameters, given);
      const view = { ...viewOf(given, today), more: ownParameters(given) };
      const question = questionOf(parameters, today);
      return await framed("usage", view, async (signal) => {
        const { usageContent } = await import("./page.ts");
        const [answer, change] = await readByStatements(async (run) => {
          const read = await amounts(run, question);
          return [read, read.compared ? await reasons(run, question) : undefined] as const;
        }, signal);
        return () => usageContent(answer, change, view, chart);
      });
    } catch (error) {
      if (!(error instanceof InvalidQuestion)) throw error;
      return (await import("../dashboard/pages.ts")).invalidPage("usage", error.message);
    }
  };
  return { "/usage": usagePage };
}
