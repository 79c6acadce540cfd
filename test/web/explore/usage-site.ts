// The page Usage and the read API over a test's database, without a worker.

import { pino } from "pino";
import type { Database } from "../../../src/db/connection/database.ts";
import { readByStatements } from "../../../src/db/connection/transaction.ts";
import type { HealthState } from "../../../src/facts/health.ts";
import type { Question } from "../../../src/facts/question.ts";
import type { Run } from "../../../src/facts/scope.ts";
import type { Day } from "../../../src/usage/days.ts";
import { framePage } from "../../../src/web/dashboard/frame.ts";
import { openApi } from "../../../src/web/explore/api.ts";
import { givenParameters, parseParameters, QuestionParameters, questionOf } from "../../../src/web/explore/question.ts";
import { openUsagePage } from "../../../src/web/explore/usage-page.ts";
import type { Answer } from "../../../src/web/page.ts";
import { healthState } from "../../health/sample-health-state.ts";
import { WELL } from "../test-monitor.ts";

/** Path to answer. The pages of another call are not in its cache. */
export function usageSite(db: Database, health: () => HealthState = healthState): Readonly<Record<string, Answer>> {
  const read = {
    readByStatements: <T>(work: (run: Run) => Promise<T>, signal: AbortSignal) =>
      readByStatements(db, work, { signal }),
  };
  const usagePage = openUsagePage({
    ...read,
    async framed(page, view, readContent) {
      const content = (await readContent(AbortSignal.timeout(5_000)))(health());
      return framePage({ page, view, health: health(), readiness: WELL, ...content });
    },
  });
  const api = openApi({ log: pino({ enabled: false }), version: "1.2.3", ...read });
  const apiPaths = ["/api/v1/usage", "/api/v1/usage.csv"];
  return { ...usagePage, ...Object.fromEntries(apiPaths.map((path) => [path, asPage(api, path)])) };
}

function asPage(api: ReturnType<typeof openApi>, path: string): Answer {
  return async (query) => {
    const response = await api.request(`${path}?${query}`);
    const headers = Object.fromEntries(response.headers);
    return {
      status: response.status,
      contentType: "",
      body: Buffer.from(await response.arrayBuffer()).toString(),
      headers,
    };
  };
}

/** The question that an address asks. */
export function askedBy(query: URLSearchParams, today: Day): Question {
  return questionOf(parseParameters(QuestionParameters, givenParameters(query)), today);
}
