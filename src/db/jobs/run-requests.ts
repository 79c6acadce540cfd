// The requests of runs that have an outcome: stored for some days, so that a person can see what a run did.

import { type RawBuilder, sql } from "kysely";
import type { Day, Window } from "../../usage/days.ts";
import { type FailedRequest, type RequestOutcome, requestOutcome, type StoredAnswer } from "../../usage/export.ts";
import type { UsageRequest } from "../../usage/plan.ts";
import type { SeriesName } from "../../usage/series.ts";
import type { Database } from "../connection/database.ts";
import { execute, type Tx } from "../connection/transaction.ts";
import { existingPage } from "../pages.ts";
import { storableStart } from "../storable-text.ts";

export type EndedRequest = {
  readonly seriesId: number;
  /** Undefined if the service chose the days. */
  readonly window: Window | undefined;
  readonly outcome: RequestOutcome;
  /** From its last call until the answer had been read; undefined if the service was not asked. */
  readonly tookMs: number | undefined;
  readonly rowsChanged: number;
  readonly code: string | undefined;
  readonly error: string | undefined;
  /** By `performance.now()`. */
  readonly endedMs: number;
};

export function endedRequest(
  { window }: UsageRequest,
  outcome: StoredAnswer | FailedRequest,
  seriesId: number,
): EndedRequest {
  const failure = "reason" in outcome ? outcome : undefined;
  return {
    ...{ seriesId, window, outcome: requestOutcome(outcome), tookMs: outcome.tookMs },
    rowsChanged: "reason" in outcome ? 0 : outcome.rowsChanged,
    ...{ code: failure?.code, error: failure?.reason, endedMs: performance.now() },
  };
}

/** An outage fails every request of a run, so that their texts are the largest part of what is stored. */
const ERROR_LENGTH_MAX = 200;

/** The statement that stores them. `condition` may compare `ended.n`, the place in the list. */
export function insertRequests(
  runId: string,
  ended: readonly EndedRequest[],
  condition: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const nowMs = performance.now();
  const columns = sql`
    ${ended.map(({ endedMs }) => nowMs - endedMs)}::float8[], ${ended.map(({ seriesId }) => seriesId)}::integer[],
    ${ended.map(({ window }) => window?.start ?? null)}::text[]::date[],
    ${ended.map(({ window }) => window?.end ?? null)}::text[]::date[],
    ${ended.map(({ tookMs }) => (tookMs === undefined ? null : Math.round(tookMs)))}::integer[],
    ${ended.map(({ rowsChanged }) => rowsChanged)}::integer[], ${ended.map(({ outcome }) => outcome)}::text[],
    ${ended.map(({ code }) => code ?? null)}::text[],
    ${ended.map(({ error }) => (error === undefined ? null : storableStart(error, ERROR_LENGTH_MAX)))}::text[]
  `;
  return sql`
    insert into usage_export.run_request
      (run_id, ended_at, series_id, first_day, last_day, took_ms, rows_changed, outcome, error_code, error)
    select ${runId}::uuid, now() - make_interval(secs => ago_ms / 1000), series_id, first_day, last_day, took_ms, rows_changed,
      outcome, error_code, error
    from unnest(${columns}) with ordinality
      as ended (ago_ms, series_id, first_day, last_day, took_ms, rows_changed, outcome, error_code, error, n)
    where ${condition}
  `;
}

/** So many take some hundred kilobytes of memory. */
const STORED_AT_ONCE = 1_000;

/** Stores the requests of a run of which a single process makes all. After `add` of the last one, `flush` is to be awaited. */
export function requestRecorder(db: Database, runId: string) {
  let waiting: EndedRequest[] = [];
  let stored = 0;
  let storing = Promise.resolve();

  /** Safe to repeat, because the number of those stored before is known. */
  async function store(ended: readonly EndedRequest[]): Promise<void> {
    const isNew = sql`(select count(*) from usage_export.run_request where run_id = ${runId}::uuid) = ${stored}`;
    await execute(db, insertRequests(runId, ended, isNew));
    stored += ended.length;
  }

  function flush(): Promise<void> {
    const ended = waiting;
    waiting = [];
    if (ended.length > 0) storing = storing.then(() => store(ended));
    storing.catch(() => {});
    return storing;
  }

  return {
    add(ended: EndedRequest): void {
      waiting.push(ended);
      if (waiting.length >= STORED_AT_ONCE) void flush();
    },
    flush,
  };
}

/** Deletes the requests of the runs that were started, and ended, before that. */
export async function deleteRequests(db: Database, before: RawBuilder<unknown>): Promise<void> {
  await execute(
    db,
    sql`
      delete from usage_export.run_request where run_id in (
        select run_id from usage_export.run
        where started_at < ${before} and heartbeat_at < ${before}
      )
    `,
  );
}

// Read for the page of a run.

export type RequestFilter = {
  readonly outcome: RequestOutcome | undefined;
  /** The name or the identifier of a project. */
  readonly project: string | undefined;
  /** From 1. */
  readonly page: number;
};

type RunRequest = SeriesName & {
  readonly from: Day | null;
  readonly to: Day | null;
  readonly outcome: RequestOutcome;
  readonly endedAt: Date;
  readonly tookMs: number | null;
  readonly rowsChanged: number;
  readonly code: string | null;
  readonly error: string | null;
};

export type RunRequests = {
  /** How many requests have each outcome, whatever is filtered by. */
  readonly counts: readonly { readonly outcome: RequestOutcome; readonly requests: number }[];
  /** Why requests failed, the most frequent cause first; at most 20. */
  readonly causes: readonly RequestCause[];
  /** How many requests the filter lets through. */
  readonly found: number;
  /** Of these, the page: those that went wrong first, then the newest. */
  readonly requests: readonly RunRequest[];
};

type RequestCause = {
  readonly code: string | null;
  readonly requests: number;
  readonly projects: number;
  /** Of one of them. */
  readonly error: string;
};

export const REQUESTS_PER_PAGE = 100;
const CAUSES_MAX = 20;

export async function readRequests(
  tx: Tx | Database,
  runId: string,
  { outcome, project, page }: RequestFilter,
): Promise<RunRequests> {
  const ofRun = sql`from bi.run_requests where run_id = ${runId}::uuid`;
  const { rows: counts } = await sql<RunRequests["counts"][number]>`
    select outcome, count(*)::integer as requests ${ofRun} group by outcome order by requests desc, outcome
  `.execute(tx);
  // An outage has another text for each request; other errors differ in the id that the service gave the request.
  const { rows: causes } = await sql<RequestCause>`
    select error_code as code, count(*)::integer as requests, count(distinct project_id)::integer as projects,
      coalesce((array_agg(error order by error))[1], '') as error
    ${ofRun} and outcome = 'failed'
    group by error_code, case when error_code in ('unavailable', 'rate_limited', 'unauthorized') then null
      else regexp_replace(error, ' \\(request id [^)]*\\)?', '') end
    order by requests desc, error limit ${CAUSES_MAX}
  `.execute(tx);
  const filtered = sql`
    ${ofRun} ${outcome === undefined ? sql`` : sql`and outcome = ${outcome}`}
      ${project === undefined ? sql`` : sql`and ${project} in (project, project_id)`}
  `;
  const { rows: totals } = await sql<{ found: number }>`select count(*)::integer as found ${filtered}`.execute(tx);
  const found = totals[0]?.found ?? 0;
  const { rows: requests } = await sql<RunRequest>`
    select project, source, "grouping", filter, from_date as "from", to_date as "to", outcome, ended_at as "endedAt",
      took_ms as "tookMs", rows_changed as "rowsChanged", error_code as code, error
    ${filtered}
    order by array_position(array['failed', 'suspect', 'stale', 'undated'], outcome), ended_at desc, project collate "C",
      "grouping", filter collate "C", from_date
    limit ${REQUESTS_PER_PAGE} offset ${(existingPage(page, found, REQUESTS_PER_PAGE) - 1) * REQUESTS_PER_PAGE}
  `.execute(tx);
  return { counts, causes, found, requests };
}
