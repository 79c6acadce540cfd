// How fast an export is, from the first request to the last commit, compared with a bare COPY of the same rows into a table with
// neither key nor index.

import { type RawBuilder, sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { secondsOfCopy } from "./bare-copy.ts";
import { median, type NewDatabase, ratio, secondsOf } from "./figures.ts";
import { configOf, GROUPINGS, withPipeline } from "./pipeline.ts";
import { type Service, startService } from "./service.ts";

const SIZES = [
  { rows: 50, projects: 500, days: 1 },
  { rows: 1_000, projects: 25, days: 10 },
  { rows: 50_000, projects: 1, days: 25 },
];
const CAP = 4;
const ROUNDS = 3;
const PERCENT_CHANGED = 5;

type Seconds = Readonly<Record<"copy" | "cold" | "unchanged" | "changed", number>>;
/** Bytes of WAL of the second run and of the third, and rows written by both. The service's numbers are unchanged in both runs. */
type Written = { readonly walBytes: number; readonly walBytesAgain: number; readonly rows: number };
type Round = { readonly seconds: Seconds; readonly written: Written };
type Size = (typeof SIZES)[number];

export async function measureLimit(newDatabase: NewDatabase): Promise<string[]> {
  const lines: string[] = [];
  for (const size of SIZES) {
    await using service = await startService({ rows: size.rows, latencyMs: 0 });
    const rounds: Round[] = [];
    for (let i = 0; i < ROUNDS; i++) rounds.push(await measureRound(service, size, await newDatabase()));
    lines.push(...linesOf(size, rounds));
  }
  return lines;
}

async function measureRound(service: Service, size: Size, databaseUrl: string): Promise<Round> {
  await service.change(0);
  return withPipeline(configOf(service.url, { ...size, cap: CAP }), databaseUrl, async (exportAll, db) => {
    const cold = await secondsOf(exportAll);
    const copy = await secondsOfCopy(db, databaseUrl);
    const before = await positionOf(db);
    const unchanged = await secondsOf(exportAll);
    const again = await positionOf(db);
    await exportAll();
    const written = await writtenSince(db, before, again);
    await service.change(PERCENT_CHANGED);
    const changed = await secondsOf(exportAll);
    return { seconds: { copy, cold, unchanged, changed }, written };
  });
}

type Position = { readonly wal: string; readonly transaction: string };

async function positionOf(db: Database): Promise<Position> {
  return one(
    db,
    sql<Position>`select pg_current_wal_insert_lsn()::text as wal, pg_current_xact_id()::text as transaction`,
  );
}

async function writtenSince(db: Database, { wal, transaction }: Position, again: Position): Promise<Written> {
  const since = sql`age(xmin) < age(${transaction}::xid)`;
  return one(
    db,
    sql<Written>`
      select (${again.wal}::pg_lsn - ${wal}::pg_lsn)::float8 as "walBytes",
        (pg_current_wal_insert_lsn() - ${again.wal}::pg_lsn)::float8 as "walBytesAgain",
        (select count(*) from usage_export.slice_row where ${since})::integer
          + (select count(*) from usage_export.superseded_row where ${since})::integer as rows
    `,
  );
}

async function one<T>(db: Database, statement: RawBuilder<T>): Promise<T> {
  const { rows } = await statement.execute(db);
  if (rows[0] === undefined) throw new Error("the database answered no row");
  return rows[0];
}

function linesOf({ rows, projects, days }: Size, rounds: readonly Round[]): string[] {
  const answers = projects * GROUPINGS.length;
  const slices = answers * days;
  const secondsFor = (what: keyof Seconds) => median(rounds.map(({ seconds }) => seconds[what]));
  const line = (what: string, seconds: number) =>
    `  ${what.padEnd(20)}${Math.round((rows * answers) / seconds)
      .toLocaleString("en")
      .padStart(12)} rows/s ${ratio(secondsFor("copy"), seconds)}`;
  const bytesOf = (what: "walBytes" | "walBytesAgain") =>
    Math.round(median(rounds.map(({ written }) => written[what])) / slices);
  return [
    `${answers} answers of ${rows} rows, ${slices} slices; rate and ratio to a bare COPY of the same rows:`,
    line("bare COPY", secondsFor("copy")),
    line("new rows", secondsFor("cold")),
    line("unchanged", secondsFor("unchanged")),
    line(`${PERCENT_CHANGED} % changed`, secondsFor("changed")),
    `  unchanged: ${bytesOf("walBytes")} bytes of WAL a slice, ${bytesOf("walBytesAgain")} in the next run, ${Math.max(...rounds.map(({ written }) => written.rows))} rows written`,
  ];
}
