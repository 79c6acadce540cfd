// A program: runs the benchmarks named as arguments (such as merge or rivals), or all of them, on a throwaway server, and prints the
// results.

import { randomBytes } from "node:crypto";
import { databaseUrl, runStatement } from "../support/postgres-admin.ts";
import { startServer } from "../support/postgres-server.ts";
import { type NewDatabase, ratio } from "./figures.ts";
import { measureFloor } from "./floor.ts";
import { measureGrowth } from "./growth.ts";
import { measureIdle } from "./idle.ts";
import { measureLatency } from "./latency.ts";
import { measureLimit } from "./limit.ts";
import { measureMemory } from "./memory.ts";
import { measureMerge } from "./merge.ts";
import { measurePlanning } from "./planning.ts";
import { measureProjects } from "./projects.ts";
import { measureQuestions } from "./questions.ts";
import { measureRivals } from "./rivals.ts";
import { measureRotations } from "./rotations.ts";
import { measureRoundTrips } from "./round-trips.ts";
import { measureStartup } from "./startup.ts";
import { measureVisitors } from "./visitors.ts";

type Benchmark = (newDatabase: NewDatabase) => Promise<string>;

const linesOf =
  (measure: (newDatabase: NewDatabase) => Promise<readonly string[]>): Benchmark =>
  async (newDatabase) =>
    `${(await measure(newDatabase)).join("\n")}\n`;

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  merge: async (newDatabase) => {
    const { rows, copy, newRows, sameAgain, tenthChanged, newRowsIntoFull, fullRows, asOf } = await measureMerge(
      await newDatabase(),
      await newDatabase(),
    );
    const line = (what: string, seconds: number) =>
      `  ${what.padEnd(40)}${seconds.toFixed(2).padStart(6)} s  ${ratio(copy, seconds)} of COPY's rate\n`;
    return [
      `storing alone: ${rows} rows in 7 answers, one after the other\n`,
      line("bare COPY of the same rows", copy),
      line("new rows", newRows),
      line("the same again", sameAgain),
      line("a tenth changed", tenthChanged),
      line(`new rows into a table of ${fullRows}`, newRowsIntoFull),
      line("usage as of a moment, over that table", asOf),
    ].join("");
  },
  floor: linesOf(measureFloor),
  limit: linesOf(measureLimit),
  trips: linesOf(measureRoundTrips),
  latency: linesOf(measureLatency),
  rivals: linesOf(measureRivals),
  memory: linesOf(measureMemory),
  idle: async (newDatabase) => {
    const few = await measureIdle(await newDatabase(), 6, 400);
    const many = await measureIdle(await newDatabase(), 60, 800);
    return `an idle worker, an hour's work in a row, 48 series of 400 days:\n${few.join("")}480 series of 800 days:\n${many.join("")}`;
  },
  growth: linesOf(measureGrowth),
  questions: linesOf(measureQuestions),
  startup: linesOf(measureStartup),
  planning: linesOf(measurePlanning),
  visitors: linesOf(measureVisitors),
  projects: linesOf(measureProjects),
  rotations: linesOf(measureRotations),
};

/** Only by name: `projects` takes as long as all others, and `rotations` waits for a full minute to begin. */
const ONLY_BY_NAME = ["projects", "rotations"];

const server = await startServer(process.env, (line) => void process.stdout.write(`${line}\n`));
const made: string[] = [];
try {
  const names = process.argv.slice(2);
  for (const [name, run] of Object.entries(BENCHMARKS)) {
    if (names.length > 0 ? !names.includes(name) : ONLY_BY_NAME.includes(name)) continue;
    process.stdout.write(
      await run(async () => {
        const database = `usage_export_bench_${randomBytes(4).toString("hex")}`;
        await runStatement(server.url, `create database ${database}`);
        made.push(database);
        // The test servers log every statement with its parameters, which takes longer than the statement itself.
        await runStatement(server.url, `alter database ${database} set log_statement = 'none'`);
        return databaseUrl(server.url, database);
      }),
    );
  }
} finally {
  for (const database of made) await runStatement(server.url, `drop database ${database} with (force)`);
  await server.stop();
}
