// Runs the program with many series, each with its own answer, and compares what the views show with what the contract demands.

import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { makeDoubtsAnHourOlder } from "../db/stored-usage.ts";
import { copyDatabase } from "../support/database.ts";
import { startProgram } from "../support/program.ts";
import { answer, answerJson, scriptedServer } from "../support/scripted-server.ts";
import { FIXTURES, type Fixture, type Window } from "./answer-fixtures.ts";
import { type StoredRow, verdictOf } from "./answer-verdict.ts";
import { plainDecimal, readTree } from "./json-tree.ts";
import { programFaults, type SeenSeries, type Series, type Served, seriesFaults } from "./series-model.ts";

export type AnswerCase = {
  /** Tells how to produce this answer again. */
  readonly name: string;
  readonly fixture: Fixture;
  readonly body: (window: Window | undefined) => Uint8Array;
  /** If left out, the answer is sent as JSON. An answer with other headers must be refused. */
  readonly headers?: Readonly<Record<string, string>>;
};

const KEY = "0123456789abcdef0123456789abcdef01234567";
const RUN_MS_MAX = 300_000;

/** Has `slots` series for each fixture. They need their own database: bi.coverage leaves out series that the newest configuration lacks. */
export async function askedSeries(dialect: Fixture["dialect"], slots: number) {
  const fixtures = FIXTURES.filter((fixture) => fixture.dialect === dialect);
  const project = "answers";
  await using opened = new AsyncDisposableStack();
  const database = opened.use(await copyDatabase());
  const db = opened.adopt(openPostgres(database.url), (db) => db.destroy());
  const { path: folder } = opened.use(await mkdtempDisposable(path.join(tmpdir(), "usage-export-faults-")));
  const series = new Map<string, Series>();
  let cases = new Map<string, AnswerCase>();

  const server = opened.use(
    await scriptedServer(({ target }, response) => {
      const { pathname, searchParams: query } = new URL(target, server.origin);
      const grouping = query.get("grouping") ?? "none";
      const asked = fixtures.find(({ askedAs }) => askedAs === grouping);
      const [start, end] = [query.get("start"), query.get("end")];
      const window = start !== null && end !== null ? { start, end } : undefined;
      if (isGroupingCheck(asked, grouping, query)) {
        return answerJson(response, 200, { ...window, results: [{ requests: 1, [grouping]: "listen", start: end }] });
      }
      if (!pathname.endsWith("/breakdown") || asked === undefined) return answer(response, 404, "");
      const name = `${asked.grouping}/${query.get("accessor")}`;
      const answerCase = cases.get(name) ?? validAnswer(asked);
      const { days, last } = series.get(name) ?? { days: new Map(), last: undefined };
      // A repeated request gets the same answer.
      const served = last ?? serve(answerCase, window);
      series.set(name, { days, last: served });
      answer(response, 200, served.body, { "content-type": "application/json", ...answerCase.headers });
    }),
  );
  const slotNames = Array.from({ length: slots }, (_, slot) => `c${slot}`);
  await writeFile(
    path.join(folder, "jobs.config.json"),
    JSON.stringify({
      service: { baseUrl: server.origin, dialect, requestsPerSecond: 100, maxConcurrent: 64 },
      projects: [{ id: project, name: project, key: { env: "USAGE_EXPORT_KEY" } }],
      exports: fixtures.map(({ grouping, windowDays }) => ({
        name: grouping,
        schedule: "15 2 * * *",
        projects: [project],
        ...(windowDays === undefined ? { undated: "day" } : { window: { days: windowDays } }),
        groupings: [grouping],
        checkFeatures: "off",
        filters: slotNames.map((name) => ({ name, dimensions: { accessor: name } })),
      })),
    }),
  );

  const all = opened.move();
  return {
    /** Serves each case to its own series. Returns the differences between what is stored and what the contract demands. */
    async run(next: readonly AnswerCase[]): Promise<readonly string[]> {
      cases = assign(next, fixtures, slotNames);
      for (const one of series.values()) one.last = undefined;
      await makeDoubtsAnHourOlder(db);
      const env = { DATABASE_URL: database.url, USAGE_EXPORT_KEY: KEY };
      const result = await startProgram(["export"], { env, cwd: folder, timeoutMs: RUN_MS_MAX }).ended;
      const seen = await seenSeries(db, project);
      return [
        ...programFaults(result, [...series.values()]),
        ...[...series].flatMap(([name, one]) => seriesFaults(one, seen.get(name))),
      ];
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/**
 * Whether the request only checks that the service knows a grouping, as the program does after an answer without any value of its
 * dimension. The series by endpoint is read without a window, so a window there means such a check.
 */
function isGroupingCheck(asked: Fixture | undefined, grouping: string, query: URLSearchParams): boolean {
  if (asked === undefined) return grouping === "endpoint" || grouping === "method";
  return asked.windowDays === undefined && query.has("start");
}

function validAnswer(fixture: Fixture): AnswerCase {
  return { name: `a valid answer: ${fixture.name}`, fixture, body: (window) => Buffer.from(fixture.body(window)) };
}

function serve({ name, fixture, body: bodyFor, headers }: AnswerCase, window: Window | undefined): Served {
  const body = bodyFor(window);
  const verdict = headers ? undefined : verdictOf(body, fixture, window, new Date().toISOString().slice(0, 10));
  return { name, body, verdict, window };
}

function assign(cases: readonly AnswerCase[], fixtures: readonly Fixture[], slots: readonly string[]) {
  return new Map(
    fixtures.flatMap((fixture) =>
      cases
        .filter((one) => one.fixture === fixture)
        .map((one, n) => [`${fixture.grouping}/${slots[n] ?? `no slot for ${one.name}`}`, one] as const),
    ),
  );
}

/** Written without an exponent, an amount can have more digits than the service may send. */
const STORED_LENGTH_MAX = 2_000;

/** By the name of the series, which is its grouping and its filter, as "model/c17". */
async function seenSeries(db: Database, project: string): Promise<ReadonlyMap<string, SeenSeries>> {
  const series = new Map<string, SeenSeries>();
  const seriesAt = (name: string): SeenSeries => {
    const one = series.get(name) ?? { rows: new Map(), status: new Map() };
    series.set(name, one);
    return one;
  };

  type Row = StoredRow & { readonly name: string; readonly day: string };
  const { rows } = await sql<Row>`
    select "grouping" || '/' || filter as name, usage_date::text as day, group_value as "group", extra_metrics::text as extra,
      array[hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests]::text[] as numbers
    from bi.usage_filtered where project_id = ${project}
  `.execute(db);
  for (const { name, day, group, numbers, extra } of rows) {
    const plain = numbers.map((text) => text && (plainDecimal(text, STORED_LENGTH_MAX) ?? text));
    const byDay = seriesAt(name).rows;
    byDay.set(day, [...(byDay.get(day) ?? []), { group, numbers: plain, extra: extraOf(extra) }]);
  }

  const { rows: coverage } = await sql<{ name: string; day: string; status: string }>`
    select "grouping" || '/' || filter as name, usage_date::text as day, status from bi.coverage where project = ${project}
  `.execute(db);
  for (const { name, day, status } of coverage) seriesAt(name).status.set(day, status);
  return series;
}

/** The numbers without a column of their own, as sorted pairs of name and number. */
function extraOf(text: string | null): string {
  const tree = readTree(text ?? "{}");
  const members = tree?.kind === "object" ? tree.members : [];
  const pairs = members.map(([name, value]) => [
    name,
    value.kind === "number" ? plainDecimal(value.digits, STORED_LENGTH_MAX) : value.kind,
  ]);
  return JSON.stringify(pairs.toSorted());
}
