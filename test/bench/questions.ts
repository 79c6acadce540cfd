// What a question of the Usage page or the read API takes with millions of rows: 200 random questions about usage and 100 about each cost,
// and the plans of the slowest.

import { readByStatements } from "../../src/db/connection/transaction.ts";
import { amounts } from "../../src/facts/amounts.ts";
import { type AskedMetric, splitsOf } from "../../src/facts/question.ts";
import { addDays, dayOf } from "../../src/usage/days.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { randomFrom } from "../support/random.ts";
import { askedBy } from "../web/explore/usage-site.ts";
import type { NewDatabase } from "./figures.ts";
import { type GrownDatabase, growDatabase, ROWS_A_DAY } from "./grown-database.ts";

const ROWS = 5_000_000;
const KINDS: readonly Kind[] = [
  { title: "about usage", metrics: METRICS, questions: 200 },
  { title: "about estimated cost", metrics: ["estimated_cost"], questions: 100 },
  { title: "about billed cost", metrics: ["billed_cost"], questions: 100 },
];
const WARM_UPS = 10;
const SLOWEST = 3;

type Kind = { readonly title: string; readonly metrics: readonly AskedMetric[]; readonly questions: number };

export async function measureQuestions(newDatabase: NewDatabase): Promise<string[]> {
  await using grown = await growDatabase(await newDatabase(), Math.ceil(ROWS / ROWS_A_DAY), true);
  const lines = [`random questions, ${grown.rows.toLocaleString("en")} rows stored`];
  for (const kind of KINDS) lines.push(...(await questionsOf(grown, kind)));
  return lines;
}

type Measured = {
  readonly query: string;
  readonly ms: number;
  readonly statements: readonly string[];
  readonly isLeftOut: boolean;
};

async function questionsOf({ db }: Pick<GrownDatabase, "db">, kind: Kind): Promise<string[]> {
  const measured: Measured[] = [];
  for (const query of randomQueries(kind)) measured.push(await ask(db, query));
  const slowestFirst = measured.slice(WARM_UPS).sort((a, b) => b.ms - a.ms);
  const at = (share: number) =>
    `${(slowestFirst[Math.floor(kind.questions * (1 - share))]?.ms ?? Number.NaN).toFixed(0)} ms`;
  const leftOut = slowestFirst.filter(({ isLeftOut }) => isLeftOut).length;
  const lines = [
    `${kind.questions} ${kind.title}: median ${at(0.5)}, 95th percentile ${at(0.95)}, longest ${at(1)}; models without a price not counted: ${leftOut}`,
  ];
  for (const { query, ms, statements } of slowestFirst.slice(0, SLOWEST)) {
    lines.push(`${ms.toFixed(0)} ms: ${query}`);
    for (const statement of statements) lines.push(...(await planOf(db, statement)));
  }
  return lines;
}

async function ask(db: GrownDatabase["db"], query: string): Promise<Measured> {
  const question = askedBy(new URLSearchParams(query), dayOf(new Date()));
  const statements: string[] = [];
  const startedMs = performance.now();
  const { lacking } = await readByStatements(db, (run) =>
    amounts((statement) => {
      statements.push(statement);
      return run(statement);
    }, question),
  );
  const ms = performance.now() - startedMs;
  return { query, ms, statements, isLeftOut: lacking.unpricedModels === null };
}

function randomQueries({ metrics, questions }: Kind): readonly string[] {
  const random = randomFrom(1).uniform;
  const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const today = dayOf(new Date());
  return Array.from({ length: questions + WARM_UPS }, () => {
    const end = addDays(today, -1 - Math.floor(random() * 300));
    const dates = { from: addDays(end, -Math.floor(random() * 365)), to: end };
    const period = oneOf(["7d", "28d", "90d", "this-month", "last-month", undefined]);
    const metric = oneOf(metrics);
    const grouping = oneOf(splitsOf(metric));
    return String(
      new URLSearchParams({
        ...(period === undefined ? dates : { period }),
        ...(random() < 0.5 && { project: `project-${Math.floor(random() * 20)}` }),
        ...(random() < 0.2 && grouping !== "none" && { group: `${grouping}-1-3f2504e0` }),
        compare: oneOf(["before", "year", "none"]),
        metric,
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
