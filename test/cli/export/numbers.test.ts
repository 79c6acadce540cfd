// The views for BI tools show exactly the numbers that the service answered, over several exports.

import { sql } from "kysely";
import { expect } from "vitest";
import { madeUpUsage } from "../../../src/emulator/usage.ts";
import { testDatabase } from "../../support/database.ts";
import { ALL_GROUPINGS, lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { rowsAsWritten } from "../stored-rows.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const DAY_MS = 86_400_000;
const FILTERS = [
  { name: "all" },
  { name: "diarized-listen", features: { diarize: true }, dimensions: { endpoint: "listen" } },
  { name: "not punctuated", features: { punctuate: false } },
];
const FILTER_QUERIES = {
  all: "",
  "diarized-listen": "diarize=true&endpoint=listen",
  "not punctuated": "punctuate=false",
};

test("every view of every grouping and filter shows the service's numbers", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(
    smallConfig(emulator.url, { exports: [{ groupings: ALL_GROUPINGS, filters: FILTERS, window: { days: 3 } }] }),
  );

  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  const reading = { groupings: ALL_GROUPINGS, filters: FILTER_QUERIES, window: lastDays(3) };
  expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
});

test("a second run of unchanged days writes no row", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["none", "tags"], filters: FILTERS }] }));
  await context.run(["export"]);
  const before = { rows: await rowsAsWritten(db), history: await historyLength() };

  expect(await context.run(["export"])).toMatchObject({ status: 0, stdout: expect.stringContaining("0 rows changed") });

  expect(before.rows.length).toBeGreaterThan(20);
  expect({ rows: await rowsAsWritten(db), history: await historyLength() }).toEqual(before);
});

test("if some rows of a day changed, only those rows are written", async ({ context }) => {
  let requests = 5;
  const emulator = await context.serve({
    usage: () => [
      { endpoint: "listen", requests },
      { endpoint: "speak", requests: 7 },
    ],
  });
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["endpoint"], window: { days: 1 } }] }));
  await context.run(["export"]);
  const before = await rowsAsWritten(db);

  requests = 6;
  expect(await context.run(["export"])).toMatchObject({ status: 0, stdout: expect.stringContaining("1 rows changed") });

  const after = await rowsAsWritten(db);
  const [kept] = before.filter(({ requests }) => requests === "7");
  expect(before).toContainEqual(expect.objectContaining({ requests: "5", revision: 1 }));
  expect(after).toHaveLength(2);
  expect(after).toContainEqual(expect.objectContaining({ requests: "6", revision: 2 }));
  expect(after).toContainEqual(kept);
});

test("after a restatement the views show the new numbers, and the history keeps the old ones", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ALL_GROUPINGS }] }));
  const reading = { groupings: ALL_GROUPINGS, window: lastDays(2) };
  const old = await servedNumbers(emulator, context.key, reading);
  await context.run(["export"]);
  const firstNight = new Date();

  // A part of a day's made-up usage arrives only on the days after it.
  emulator.now = () => new Date(Date.now() + DAY_MS);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  const served = await servedNumbers(emulator, context.key, reading);
  expect(served).not.toEqual(old);
  expect(await storedNumbers(db, reading)).toEqual(served);
  const { rows } = await sql`
    select usage_date::text, requests::text from bi.usage_as_of(${firstNight})
    where "grouping" = 'none' order by usage_date
  `.execute(db);
  expect(rows).toEqual(old["none / all"]?.map(({ usage_date, requests }) => ({ usage_date, requests })));
});

test("a group that the service no longer sends leaves the views, and returns when it is sent again", async ({
  context,
}) => {
  const usage = madeUpUsage(1);
  let hidden = "";
  const emulator = await context.serve({
    usage: (project, day, age) => usage(project, day, age).filter(({ endpoint }) => endpoint !== hidden),
  });
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["endpoint", "tags"] }] }));
  const reading = { groupings: ["endpoint", "tags"], window: lastDays(2) };
  const seen: unknown[] = [];
  for (hidden of ["", "speak", ""]) {
    expect(await context.run(["export"])).toMatchObject({ status: 0 });
    expect(await storedNumbers(db, reading)).toEqual(await servedNumbers(emulator, context.key, reading));
    const { rows } = await sql`select revision from bi.usage_by_endpoint where endpoint = 'speak'`.execute(db);
    seen.push(rows);
  }
  expect(seen).toEqual([[{ revision: 1 }, { revision: 1 }], [], [{ revision: 3 }, { revision: 3 }]]);
});

test("a number keeps all its digits even if a double can't hold it", async ({ context }) => {
  const hours = ["0.1", "0.30000000000000004", "9007199254740993", "123456789012345678901234567890.000000001"];
  const emulator = await context.serve({
    fault: () => ({
      kind: "body",
      change: ({ results, ...answer }) => {
        const rows = Array.isArray(results) ? results.slice(0, hours.length) : [];
        return JSON.stringify({ ...answer, results: rows }).replaceAll(
          /"hours":[^,]*/g,
          () => `"hours":${hours[++written]}`,
        );
      },
    }),
  });
  let written = -1;
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["endpoint"], window: { days: 1 } }] }));

  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  const { rows } = await sql<{
    hours: string;
  }>`select hours::text from bi.usage_by_endpoint u order by u.hours`.execute(db);
  expect(rows.map((row) => row.hours)).toEqual(hours);
});

test("a number that was not sent is NULL, and an unknown metric is kept", async ({ context }) => {
  const { start: usage_date } = lastDays(1);
  const results = [{ requests: 7, video_frames: 12.5, grouping: { start: usage_date, end: usage_date } }];
  const emulator = await context.serve({ fault: () => ({ kind: "body", change: (json) => ({ ...json, results }) }) });
  await context.configure(smallConfig(emulator.url, { exports: [{ window: { days: 1 } }] }));

  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  const { rows } = await sql`select usage_date, requests, hours, tokens_in, extra_metrics from bi.usage_total`.execute(
    db,
  );
  expect(rows).toEqual([
    { usage_date, requests: "7", hours: null, tokens_in: null, extra_metrics: { video_frames: 12.5 } },
  ]);
});

async function historyLength(): Promise<unknown> {
  const { rows } = await sql`select count(*) from usage_export.row_revision`.execute(db);
  return rows;
}
