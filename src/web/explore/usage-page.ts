// Answers the requests for the page Usage.

import { amounts } from "../../facts/amounts.ts";
import { InvalidQuestion } from "../../facts/question.ts";
import type { Run } from "../../facts/scope.ts";
import { dayOf } from "../../usage/days.ts";
import type { Dashboard } from "../dashboard/dashboard.ts";
import { pageCache } from "../dashboard/page-cache.ts";
import type { Answer, Page } from "../page.ts";
import { givenParameters, ownParameters, PageParameters, parseParameters, questionOf, viewOf } from "./question.ts";

type UsagePageDeps = Pick<Dashboard, "framed"> & {
  readonly readByStatements: <T>(read: (run: Run) => Promise<T>, signal: AbortSignal) => Promise<T>;
};

/** Path to answer. */
export function openUsagePage({ framed, readByStatements }: UsagePageDeps): Readonly<Record<string, Answer>> {
  const makePage = async (text: string): Promise<Page> => {
    try {
      const [given, today] = [givenParameters(new URLSearchParams(text)), dayOf(new Date())];
      const { chart, ...parameters } = parseParameters(PageParameters, given);
      const view = { ...viewOf(given, today), more: ownParameters(given) };
      const question = questionOf(parameters, today);
      return await framed("usage", view, async (signal) => {
        const { usageContent } = await import("./page.ts");
        const answer = await readByStatements((run) => amounts(run, question), signal);
        return () => usageContent(answer, view, chart);
      });
    } catch (error) {
      if (!(error instanceof InvalidQuestion)) throw error;
      return (await import("../dashboard/pages.ts")).invalidPage("usage", error.message);
    }
  };
  const cached = pageCache(makePage);
  return { "/usage": (query) => cached(String(query)) };
}
