// The output and the log of the command `export`, and the options that choose what is read.

import { sql } from "kysely";
import { expect } from "vitest";
import { z } from "zod";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { logStatements } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { findLeaks } from "../../support/leaks.ts";
import { breakdowns, holdAnswersFrom } from "../evidence.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { PRODUCTION } from "../small-config.ts";

const { test, db, url } = await databaseTest();

const today = dayOf(new Date());
const FILTERS = [{ name: "all" }, { name: "diarized", features: { diarize: true } }];

test("standard output has one line for each job, with the counts of what was done", async ({ context }) => {
  await serveTwoJobs(context);
  const lines = ["nightly: 4 requests, 8 slices", "hourly: 1 request, 1 slice"].map(
    (line) => `${line} complete, 0 suspect, 0 failed; \\d+ rows changed\n`,
  );
  const stdout = expect.stringMatching(new RegExp(`^${lines.join("")}$`));
  expect(await context.run(["export"])).toMatchObject({ status: 0, stdout });
});

test("--json prints the counts and failures of each job", async ({ context }) => {
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
  // Each run that has read any usage also reads the project's list of keys.
  expect(emulator.requests.filter(({ path }) => path.endsWith("/keys"))).toHaveLength(2);
});

test("--job, --project, --grouping and --filter narrow what is read", async ({ context }) => {
  const second = context.newSecret();
  const projects = [PRODUCTION, { id: "project-2", name: "staging", key: { env: "SECOND_KEY" } }];
  const exports = [
    { projects: ["production", "staging"], groupings: ["none", "tags"], filters: FILTERS },
    { name: "hourly", groupings: ["method"] },
  ];
  const consoleKeys = [{ secret: second, projectId: "project-2", scopes: ["member"] }];
  await context.setUp({ projects, exports }, { consoleKeys });
  const seriesRead = async (...args: string[]) => {
    const before = await fetchNumbers();
    expect(await context.run(["export", ...args], { SECOND_KEY: second })).toMatchObject({ status: 0 });
    const after = await fetchNumbers();
    return [...after].filter(([series, number]) => number !== before.get(series)).map(([series]) => series);
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

test("--day reads the given days instead of the window", async ({ context }) => {
  const emulator = await context.setUp();
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

test("the log has one line of JSON for each event", async ({ context }) => {
  const emulator = await serveTwoJobs(context);
  emulator.fault = ({ path }) => (path.includes("grouping=tags") ? { kind: "body", change: () => ({}) } : undefined);

  const { stderr } = await context.run(["export", "--filter", "all"]);

  const lines = stderr.trimEnd().split("\n");
  const [first, ...rest] = lines.map((line) => LogLine.parse(JSON.parse(line)));
  expect(first).toMatchObject({ msg: "database" });
  expect(rest.map(({ job, msg }) => `${job}: ${msg}`)).toEqual([
    "nightly: export started",
    "nightly: usage request failed",
    "nightly: export finished",
    "hourly: export started",
    "hourly: export finished",
  ]);
  const failed = { project: "production", grouping: "tags", filter: "all" };
  expect(rest[1]).toMatchObject({ level: 50, code: "bad_answer", ...failed });
});

test("while an export runs, its key is in no command line and no statement", async ({ context }) => {
  const emulator = await serveTwoJobs(context);
  await logStatements(url, true);
  const program = context.start(["export"]);
  // The export waits for the second answer while the search for its key goes on.
  const releaseAnswers = await holdAnswersFrom(emulator, 2);
  const leaks = await findLeaks([context.key], { databaseUrl: url });
  releaseAnswers();

  expect(leaks).toEqual([]);
  expect(await program.ended).toMatchObject({ status: 0 });
});

const PRICE = { metric: "hours", model: "nova-*", currency: "USD", price: "0.0077", from: "2026-01-01" };

test("an export stores each change of the configured prices", async ({ context }) => {
  const exported = async (...prices: readonly object[]) => {
    await context.setUp({ exports: [{ groupings: ["none", "model"] }], prices });
    const { stderr } = await context.run(["export"]);
    const { rows } = await sql<{ text: string }>`
      select concat_ws(' ', metric, valid_from, valid_until, price) as text
      from bi.price_book where tier_above = 0 order by price_id
    `.execute(db);
    return { logged: stderr.split('"prices changed"').length - 1, stored: rows.map(({ text }) => text) };
  };
  expect(await exported(PRICE)).toEqual({ logged: 1, stored: ["hours 2026-01-01 0.0077"] });
  expect(await exported(PRICE)).toEqual({ logged: 0, stored: ["hours 2026-01-01 0.0077"] });
  const later = { ...PRICE, price: "0.01", from: "2026-03-01" };
  expect(await exported({ ...PRICE, until: "2026-02-28" }, later)).toEqual({
    logged: 1,
    stored: ["hours 2026-01-01 2026-02-28 0.0077", "hours 2026-03-01 0.01"],
  });
  expect(await exported()).toMatchObject({ stored: [] });
});

/** Configures two jobs: "nightly" with four series of two days, and "hourly" with one series of one day. */
function serveTwoJobs(context: ProgramContext): Promise<Emulator> {
  const hourly = { name: "hourly", schedule: "5 * * * *", groupings: ["method"], window: { days: 1 } };
  return context.setUp({ exports: [{ groupings: ["none", "tags"], filters: FILTERS }, hourly] });
}

/** The number of the newest fetch of each series. */
async function fetchNumbers(): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ series: string; number: string }>`
    select concat_ws(' / ', project, "grouping", filter) as series, max(fetch_no)::text as number
    from usage_export.slice join usage_export.series using (series_id) group by 1 order by 1
  `.execute(db);
  return new Map(rows.map(({ series, number }) => [series, number]));
}
