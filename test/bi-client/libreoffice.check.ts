// The views as a BI client shows them: LibreOffice, which knows nothing of this program, connects as an analyst would.

import { randomBytes } from "node:crypto";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addDays } from "../../src/usage/days.ts";
import { newSeries, rowOf, rowsOn, store, view } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { type Seen, useOffice } from "./office.ts";

const { db, directUrl } = await testDatabase();
const { hostname, port, pathname } = new URL(directUrl);

const DATABASE = pathname.slice(1);
const READER = `bi_reader_${randomBytes(4).toString("hex")}`;
const PASSWORD = randomBytes(16).toString("hex");
const METRICS = ["hours", "requests"] as const;
/** West of Greenwich, where a day that was taken for a moment is the day before. */
const TIME_ZONE = "America/Los_Angeles";
/** The day that a spreadsheet counts from. */
const DAY_ZERO = "1899-12-30";

/** Each with the reason it is refused for. */
const FORBIDDEN: readonly (readonly [string, string])[] = [
  ["select * from usage_export.api_key", "permission denied for schema usage_export"],
  ["select * from usage_export_queue.job_common", "permission denied for schema usage_export_queue"],
  ["update bi.runs set error = 'x'", "permission denied for view runs"],
  ["delete from usage_export.slice", "permission denied for schema usage_export"],
  ["create table bi.mine (x integer)", "permission denied for schema bi"],
];

const folder = await mkdtemp(path.join(tmpdir(), "usage-export-bi-client-"));
const file = path.join(folder, "usage.ods");
const { project, seriesId } = await newSeries(db, "model");
let seen: Seen;

beforeAll(async () => {
  await storeUsage();
  await createReader();
  seen = await useOffice(
    {
      connection: { host: hostname, port, database: DATABASE, user: READER, password: PASSWORD },
      ...{ view: "bi.usage_by_model", rows: "usage_date", columns: "model", metrics: METRICS },
      ...{ statements: FORBIDDEN.map(([statement]) => statement), file },
    },
    TIME_ZONE,
  );
});

afterAll(async () => {
  await rm(folder, { recursive: true });
  // Roles are of the whole server, which may be one that was given.
  await sql`drop role if exists ${sql.id(READER)}`.execute(db);
});

test("it lists all views of bi, and can read them and nothing else", async () => {
  const { rows } = await sql<{ name: string }>`
    select 'bi.' || viewname as name from pg_views where schemaname = 'bi' order by 1
  `.execute(db);
  const views = rows.map(({ name }) => name);
  expect(seen.listed).toEqual(expect.arrayContaining(views));
  expect(seen.readable.toSorted()).toEqual(views);
});

test.each(FORBIDDEN.map(([statement, reason], index) => ({ statement, reason, index })))(
  "it is refused: $statement",
  ({ reason, index }) => {
    expect(seen.refusals[index]).toContain(reason);
  },
);

test("it shows the comment of each column", async () => {
  const { rows } = await sql<{ name: string; comment: string }>`
    select attname as name, col_description(attrelid, attnum) as comment from pg_attribute
    where attrelid = 'bi.usage_by_model'::regclass and attnum > 0
  `.execute(db);
  expect(seen.descriptions).toEqual(Object.fromEntries(rows.map(({ name, comment }) => [name, comment])));
});

test("numbers are numbers, days are the same days, and text that looks like a formula is text", async () => {
  const stored = await view(db, "usage_by_model", project);
  const expected = stored.map(({ usage_date, model, hours, requests, tokens_in }) => ({
    ...{ usage_date, model: model ?? "" },
    ...{ hours: Number(hours), requests: Number(requests), tokens_in: tokens_in === null ? "" : Number(tokens_in) },
  }));

  const imported = records().map(({ usage_date, model, hours, requests, tokens_in }) => ({
    ...{ usage_date: addDays(DAY_ZERO, Number(usage_date)), model, hours, requests, tokens_in },
  }));

  expect(imported).toHaveLength(expected.length);
  expect(imported).toEqual(expect.arrayContaining(expected));
});

test("moments are in UTC, by the setting of the role, whatever the database's time zone", () => {
  expect(new Set(records().map(({ last_changed_at }) => String(last_changed_at).slice(-3)))).toEqual(new Set(["+00"]));
});

test.each(METRICS)("a pivot table of %s and its chart add up to what SQL adds up", async (metric) => {
  const { rows } = await sql<{ total: string }>`
    select sum(${sql.ref(metric)}) as total from bi.usage_by_model
  `.execute(db);
  // A spreadsheet adds doubles up.
  const total = expect.closeTo(Number(rows[0]?.total), 9);
  expect(seen.pivots[metric]).toEqual({ total, charted: total });
});

test("what it made is kept as a spreadsheet", async () => {
  await using ods = await open(file);
  // The first file in it, which is not packed.
  const opening = (await ods.read({ buffer: Buffer.alloc(100) })).buffer.toString("latin1");
  expect(opening).toContain("mimetypeapplication/vnd.oasis.opendocument.spreadsheet");
});

/** Numbers that a double does not hold exactly, and values that a client could take for something else. */
async function storeUsage(): Promise<void> {
  const models = ["nova-3", ["aura-2", "nova-3"], "=1+1", null];
  // Among them the day on which clocks change there.
  const days = ["2026-03-07", "2026-03-08", "2026-03-09", "2026-11-01"];
  const slices = days.map((day, late) =>
    rowsOn(
      day,
      models.map((model, index) =>
        rowOf(
          model,
          {
            hours: `${late}.${index}0000000001`,
            requests: `${10 ** (late * 4) + index}`,
            ...(index > 0 && { tokens_in: "7" }),
          },
          '{"sessions":3}',
          "model",
        ),
      ),
    ),
  );
  await store(db, seriesId, slices, { grouping: "model" });
}

/** As the README says, for a database that lives in another time zone. */
async function createReader(): Promise<void> {
  await sql`
    alter database ${sql.id(DATABASE)} set timezone = ${sql.lit(TIME_ZONE)};
    create role ${sql.id(READER)} login password ${sql.lit(PASSWORD)} in role usage_reader;
    alter role ${sql.id(READER)} set timezone = 'UTC';
    alter role ${sql.id(READER)} set statement_timeout = '60s';
  `.execute(db);
}

function records(): readonly Readonly<Record<string, string | number>>[] {
  const [names = [], ...rows] = seen.cells;
  return rows.map((row) => Object.fromEntries(row.map((cell, index) => [names[index], cell])));
}
