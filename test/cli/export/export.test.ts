// The answer and the log of the command `export`, and the options that choose what is read.

import { sql } from "kysely";
import { expect } from "vitest";
import { z } from "zod";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { logStatements, testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { findLeaks } from "../../support/leaks.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";
import { breakdowns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const today = dayOf(new Date());
const FILTERS = [{ name: "all" }, { name: "diarized", features: { diarize: true } }];

test("standard output has one line for each job, with the counts of what was done", async ({ context }) => {
  await serveTwoJobs(context);
  const { stdout, status } = await context.run(["export"]);
  expect({ stdout, status }).toEqual({
    status: 0,
    stdout: expect.stringMatching(
      /^nightly: 4 requests, 8 slices complete, 0 suspect, 0 failed; \d+ rows changed\nhourly: 1 requests, 1 slices complete, 0 suspect, 0 failed; \d+ rows changed\n$/,
    ),
  });
});

test("the answer in JSON has the counts of each job, and each failure with its request", async ({ context }) => {
  const emulator = await serveTwoJobs(context);
  emulator.fault = ({ path }) =>
    path.includes("grouping=tags") ? { kind: "answer", status: 400, body: "not today" } : undefined;

  const { stdout, status } = await context.run(["export", "--json"]);

  const window = { start: addDays(today, -2), end: addDays(today, -1) };
  const failure = { project: "production", grouping: "tags", ...window, reason: expect.stringContaining("not today") };
  expect({ answer: JSON.parse(stdout), status }).toEqual({
    status: 1,
    answer: [
      {
        job: "nightly",
        ...{ requests: 4, planned: 8, complete: 4, suspect: 0, failed: 4, undated: 0, stale: 0 },
        rowsChanged: expect.any(Number),
        failures: expect.arrayContaining([
          { ...failure, filter: "all" },
          { ...failure, filter: "diarized" },
        ]),
        doubts: [],
      },
      expect.objectContaining({ job: "hourly", failed: 0, failures: [] }),
    ],
  });
});

test("--job, --project, --grouping and --filter narrow what is read", async ({ context }) => {
  const second = context.newSecret();
  const emulator = await context.serve({
    consoleKeys: [{ secret: second, projectId: "project-2", scopes: ["member"] }],
  });
  const projects = [PRODUCTION, { id: "project-2", name: "staging", key: { env: "SECOND_KEY" } }];
  const exports = [
    { projects: ["production", "staging"], groupings: ["none", "tags"], filters: FILTERS },
    { name: "hourly", groupings: ["method"] },
  ];
  await context.configure(smallConfig(emulator.url, { projects, exports }));
  const seriesRead = async (...args: string[]) => {
    const seen = await fetchNumbers();
    expect(await context.run(["export", ...args], { SECOND_KEY: second })).toMatchObject({ status: 0 });
    const now = await fetchNumbers();
    return [...now].filter(([series, number]) => number !== seen.get(series)).map(([series]) => series);
  };

  expect(await seriesRead("--job", "hourly")).toEqual(["production / method / all"]);
  expect(await seriesRead("--project", "staging", "--grouping", "tags")).toEqual([
    "staging / tags / all",
    "staging / tags / diarized",
  ]);
  expect(await seriesRead("--filter", "diarized", "--project", "production")).toEqual([
    "production / none / diarized",
    "production / tags / diarized",
  ]);
  expect(await seriesRead("--grouping", "none", "method", "--filter", "all")).toEqual([
    "production / method / all",
    "production / none / all",
    "staging / none / all",
  ]);
});

test("--day reads the given days instead of the window, and makes no other day missing", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  const days = [addDays(today, -40), addDays(today, -39), addDays(today, -20)];

  expect(await context.run(["export", "--day", ...days])).toMatchObject({ status: 0 });

  const asked = breakdowns(emulator).map((path) => new URL(path, emulator.url).searchParams);
  expect(asked.map((query) => [query.get("start"), query.get("end")]).sort()).toEqual([
    [days[0], days[1]],
    [days[2], days[2]],
  ]);
  const { rows } = await sql`select usage_date, status from bi.coverage order by usage_date`.execute(db);
  expect(rows).toEqual(days.map((usage_date) => ({ usage_date, status: "complete" })));
});

const LogLine = z.looseObject({ level: z.number(), time: z.iso.datetime(), msg: z.string() });

test("the log has one line of JSON for each event, and says which request failed", async ({ context }) => {
  const emulator = await serveTwoJobs(context);
  emulator.fault = ({ path }) => (path.includes("grouping=tags") ? { kind: "body", change: () => ({}) } : undefined);

  const { stderr } = await context.run(["export", "--filter", "all"]);

  const lines = stderr
    .trimEnd()
    .split("\n")
    .map((line) => LogLine.parse(JSON.parse(line)));
  const [first, ...rest] = lines;
  expect(first).toMatchObject({ msg: "database" });
  expect(rest.map(({ job, msg }) => `${job}: ${msg}`)).toEqual([
    "nightly: export started",
    "nightly: usage request failed",
    "nightly: export finished",
    "hourly: export started",
    "hourly: export finished",
  ]);
  expect(rest[1]).toMatchObject({
    level: 50,
    code: "bad_answer",
    project: "production",
    grouping: "tags",
    filter: "all",
  });
});

test("LOG_LEVEL says how much is logged", async ({ context }) => {
  await serveTwoJobs(context);
  expect(await context.run(["export"], { LOG_LEVEL: "error" })).toMatchObject({ status: 0, stderr: "" });
});

test("a run is recorded in bi.runs with its counts", async ({ context }) => {
  await serveTwoJobs(context);
  await context.run(["export", "--job", "nightly"]);
  const { rows } = await sql`
    select kind, job, trigger, status, requests, slices_planned, slices_complete, slices_failed, error,
      finished_at >= started_at as ended
    from bi.runs
  `.execute(db);
  expect(rows).toEqual([
    {
      ...{ kind: "export", job: "nightly", trigger: "manual", status: "ok", error: null, ended: true },
      ...{ requests: 4, slices_planned: 8, slices_complete: 8, slices_failed: 0 },
    },
  ]);
});

test("while an export runs, its key is in no command line and no statement", async ({ context }) => {
  const emulator = await serveTwoJobs(context);
  await logStatements(database.directUrl, true);
  const program = context.start(["export"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 2);
  const leaks = await findLeaks([context.key], { databaseUrl: database.url });
  releaseAnswers();

  expect(leaks).toEqual([]);
  expect(await program.ended).toMatchObject({ status: 0 });
});

/** Configures two jobs: "nightly" with four series of two days, and "hourly" with one series of one day. */
async function serveTwoJobs(context: ProgramContext): Promise<Emulator> {
  const emulator = await context.serve();
  const exports = [
    { groupings: ["none", "tags"], filters: FILTERS },
    { name: "hourly", schedule: "5 * * * *", groupings: ["method"], window: { days: 1 } },
  ];
  await context.configure(smallConfig(emulator.url, { exports }));
  return emulator;
}

/** The number of the newest fetch of each series. */
async function fetchNumbers(): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ series: string; number: string }>`
    select concat_ws(' / ', project, "grouping", filter) as series, max(fetch_no)::text as number
    from usage_export.slice join usage_export.series using (series_id) group by 1 order by 1
  `.execute(db);
  return new Map(rows.map(({ series, number }) => [series, number]));
}
