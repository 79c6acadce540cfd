// What a question of the Usage page or the read API costs with millions of rows: 200 random questions, and the plans of the slowest.

import { readByStatements } from "../../src/db/report/statements.ts";
import { addDays, dayOf } from "../../src/usage/days.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { GROUPINGS } from "../../src/usage/series.ts";
import { questionOf } from "../../src/web/explore/question.ts";
import { readAnswer } from "../../src/web/explore/read-answer.ts";
import { randomFrom } from "../accuracy/random.ts";
import type { NewDatabase } from "./figures.ts";
import { type GrownDatabase, growDatabase, ROWS_A_DAY } from "./grown-database.ts";

const ROWS = 5_000_000;
const QUESTIONS = 200;
const WARM_UPS = 10;
const SLOWEST = 3;

export async function measureQuestions(newDatabase: NewDatabase): Promise<string[]> {
  await using grown = await growDatabase(await newDatabase(), Math.ceil(ROWS / ROWS_A_DAY));
  return await questionsOf(grown);
}

type Measured = { readonly query: string; readonly ms: number; readonly statements: readonly string[] };

async function questionsOf({ db, rows }: Pick<GrownDatabase, "db" | "rows">): Promise<string[]> {
  const queries = randomQueries(QUESTIONS + WARM_UPS);
  const measured: Measured[] = [];
  for (const query of queries) measured.push(await ask(db, query));
  const slowestFirst = measured.slice(WARM_UPS).sort((a, b) => b.ms - a.ms);
  const at = (share: number) =>
    `${(slowestFirst[Math.floor(QUESTIONS * (1 - share))]?.ms ?? Number.NaN).toFixed(0)} ms`;
  const lines = [
    `${QUESTIONS} random questions, ${rows.toLocaleString("en")} rows stored: median ${at(0.5)}, 95th percentile ${at(0.95)}, longest ${at(1)}`,
  ];
  for (const { query, ms, statements } of slowestFirst.slice(0, SLOWEST)) {
    lines.push(`${ms.toFixed(0)} ms: ${query}`);
    for (const statement of statements) lines.push(...(await planOf(db, statement)));
  }
  return lines;
}

async function ask(db: GrownDatabase["db"], query: string): Promise<Measured> {
  const question = questionOf(new URLSearchParams(query), dayOf(new Date()));
  const statements: string[] = [];
  const startedMs = performance.now();
  await readByStatements(db, (run) =>
    readAnswer((statement) => {
      statements.push(statement);
      return run(statement);
    }, question),
  );
  return { query, ms: performance.now() - startedMs, statements };
}

function randomQueries(count: number): readonly string[] {
  const random = randomFrom(1).uniform;
  const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const today = dayOf(new Date());
  return Array.from({ length: count }, () => {
    const end = addDays(today, -1 - Math.floor(random() * 300));
    const dates = { from: addDays(end, -Math.floor(random() * 365)), to: end };
    const period = oneOf(["7d", "30d", "90d", "this-month", "last-month", undefined]);
    const grouping = oneOf(GROUPINGS);
    return String(
      new URLSearchParams({
        ...(period === undefined ? dates : { period }),
        ...(random() < 0.5 && { project: `project-${Math.floor(random() * 20)}` }),
        ...(random() < 0.2 && grouping !== "none" && { group: `${grouping}-1-3f2504e0` }),
        compare: oneOf(["before", "year", "none"]),
        metric: oneOf(METRICS),
        grouping,
        limit: oneOf(["20", "1000"]),
      }),
    );
  });
}

async function planOf(db: GrownDatabase["db"], statement: string): Promise<string[]> {
  return readByStatements(db, async (run) => {
    const plan = await run<{ "QUERY PLAN": string }>(`explain (analyze, costs off) ${statement}`);
    return plan.map((row) => `    ${row["QUERY PLAN"]}`);
  });
}
