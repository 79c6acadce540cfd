// The page Usage and the read API over a test's database, without a worker.

import { sql } from "kysely";
import { pino } from "pino";
import { expect } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { openRowCache, queryAtOneMoment } from "../../src/db/connection/transaction.ts";
import type { HealthState } from "../../src/facts/health.ts";
import type { Question } from "../../src/facts/question.ts";
import type { Query } from "../../src/facts/scope.ts";
import type { Day } from "../../src/usage/days.ts";
import { openReadApi } from "../../src/web/api.ts";
import { openDashboard } from "../../src/web/dashboard/pages.ts";
import type { MakePage } from "../../src/web/page.ts";
import { parseQuery, QuestionParameters, questionOf } from "../../src/web/url.ts";
import { dashboardReads } from "../../src/worker/monitoring.ts";
import { healthState, makeProject } from "../health/sample-health-state.ts";
import { WELL } from "./test-monitor.ts";

const cache = openRowCache();

/** The pages and the API by path. Each site makes its own pages; all share one cache of rows. */
export function usageSite(db: Database, health?: () => HealthState): Readonly<Record<string, MakePage>> {
  const log = pino({ enabled: false });
  const noConfig = () => expect.fail("the page Usage & cost does not read the configuration");
  const reads = { ...dashboardReads(db, noConfig, cache), readHealth: async () => health?.() ?? (await healthOf(db)) };
  const pages = openDashboard({ log, readiness: () => WELL, ...reads });
  const read = <T>(work: (query: Query) => Promise<T>, signal: AbortSignal) =>
    queryAtOneMoment(db, work, { signal, cache });
  const api = openReadApi({ log, version: "1.2.3", queryAtOneMoment: read });
  const apiPaths = ["/api/v1/usage", "/api/v1/usage.csv"];
  const usage = pages["/usage"];
  return {
    ...(usage && { "/usage": usage }),
    ...Object.fromEntries(apiPaths.map((path) => [path, asPage(api, path)])),
  };
}

/** A health state with the stored projects. */
async function healthOf(db: Database): Promise<HealthState> {
  const { rows } = await sql<{ project: string; projectId: string }>`
    select distinct project_id as "projectId", project from bi.series
  `.execute(db);
  return healthState({ projects: rows.map(makeProject) });
}

function asPage(api: ReturnType<typeof openReadApi>, path: string): MakePage {
  return async (query) => {
    const response = await api.request(`${path}?${query}`);
    const body = Buffer.from(await response.arrayBuffer()).toString();
    return { status: response.status, contentType: "", body, headers: Object.fromEntries(response.headers) };
  };
}

/** Runs a statement that the program offers to copy as usage_reader, the role of BI tools. */
export async function asReader(db: Database, statement: string): Promise<readonly Record<string, string | null>[]> {
  return db.transaction().execute(async (tx) => {
    await sql`set local role usage_reader`.execute(tx);
    return (await sql.raw<Record<string, string | null>>(statement).execute(tx)).rows;
  });
}

/** The question of a URL's parameters. */
export function parseQuestion(query: URLSearchParams, today: Day): Question {
  return questionOf(parseQuery(QuestionParameters, query), today);
}
