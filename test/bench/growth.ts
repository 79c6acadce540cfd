// What years of history cost: the times of storing new rows, of the dashboard and of a BI tool's queries, with an empty database and
// with millions of rows; and the disk space that a row takes.

import { sql } from "kysely";
import { median, type NewDatabase, ratio } from "./figures.ts";
import { type GrownDatabase, growDatabase, ROWS_A_DAY } from "./grown-database.ts";
import { ask, NEW_ROWS, readPage, storeNewRows, type Work } from "./grown-work.ts";

const SIZES = [0, 1_000_000, 5_000_000];
const ROUNDS = 9;
const LATEST = "usage_date >= current_date - 30";

/** Queries of a BI tool over the last 30 days. */
const QUESTIONS = {
  "usage a day and model": `select usage_date, model, sum(requests), sum(hours) from bi.usage_by_model where ${LATEST} group by 1, 2`,
  "top 10 accessors": `select accessor, sum(requests) from bi.usage_by_accessor where ${LATEST} group by 1 order by 2 desc limit 10`,
  "estimated cost": `select usage_date, model, currency, sum(amount) from bi.cost_estimated where amount is not null and ${LATEST} group by 1, 2, 3`,
  coverage: `select usage_date, "grouping", status, count(*) from bi.coverage where ${LATEST} group by 1, 2, 3`,
  restatements: `select usage_date, metric, count(*), sum(new_value - old_value) from bi.restatements where ${LATEST} group by 1, 2`,
};

const READS: readonly (readonly [what: string, work: Work])[] = [
  ...["/", "/usage", "/data-health"].map((path) => [`dashboard ${path}`, readPage(path)] as const),
  ...Object.entries(QUESTIONS).map(([what, question]) => [`BI: ${what}`, ask(question)] as const),
];

export async function measureGrowth(newDatabase: NewDatabase): Promise<string[]> {
  const grown: GrownDatabase[] = [];
  try {
    for (const rows of SIZES) grown.push(await growDatabase(await newDatabase(), Math.ceil(rows / ROWS_A_DAY)));
    return await measureGrown(grown);
  } finally {
    for (const { db } of grown) await db.destroy();
  }
}

/** `grown` is ordered by size. Times of reading are compared with the second database, because the first is empty. */
async function measureGrown(grown: readonly GrownDatabase[]): Promise<string[]> {
  const lines = [
    `${"rows stored".padEnd(WIDTH)}${grown.map(({ rows }) => rows.toLocaleString("en").padStart(22)).join("")}`,
  ];
  const bytes: string[] = [];
  for (const one of grown) bytes.push(one.rows > 0 ? `${(await bytesOf(one)).toFixed(0)} bytes a row` : "");
  lines.push(`${"  in tables and indexes".padEnd(WIDTH)}${bytes.map((text) => text.padStart(22)).join("")}`);
  for (const [what, work] of READS) lines.push(lineOf(what, await mediansOf(grown, work), 1));
  // Last, because it adds rows to each database.
  lines.push(lineOf(`${NEW_ROWS.toLocaleString("en")} new rows`, await mediansOf(grown, storeNewRows), 0));
  return lines;
}

/** The median time for each database. The databases take turns in each round; the first round warms up and is not counted. */
async function mediansOf(grown: readonly GrownDatabase[], work: Work): Promise<number[]> {
  const seconds = grown.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [i, one] of grown.entries()) {
      const took = await work(one, round);
      if (round > 0) seconds[i]?.push(took);
    }
  }
  return seconds.map(median);
}

async function bytesOf({ db, rows }: GrownDatabase): Promise<number> {
  const { rows: sizes } = await sql<{ bytes: number }>`
    select sum(pg_total_relation_size(relation::regclass))::float8 as bytes
    from unnest(array['usage_export.snapshot_row', 'usage_export.superseded_row', 'usage_export.slice']) as relation
  `.execute(db);
  return (sizes[0]?.bytes ?? Number.NaN) / rows;
}

const WIDTH = 32;

/** Each time from the index `base` on is shown with its ratio to the time at that index. */
function lineOf(what: string, seconds: readonly number[], base: number): string {
  const cells = seconds.map(
    (took, i) =>
      `${(took * 1_000).toFixed(0).padStart(10)} ms ${i < base ? "        " : ratio(took, seconds[base] ?? Number.NaN)}`,
  );
  return `${`  ${what}`.padEnd(WIDTH)}${cells.join("")}`;
}
