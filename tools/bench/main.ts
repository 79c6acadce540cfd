// A program: runs the benchmarks named as arguments (such as floor or rivals), or all of them, on a throwaway server, and prints the
// results.

import { randomBytes } from "node:crypto";
import { databaseUrl, runStatement } from "../../test/support/postgres-admin.ts";
import { startServer } from "../../test/support/postgres-server.ts";
import type { NewDatabase } from "./figures.ts";
import { measureFloor } from "./floor.ts";
import { measureLatency } from "./latency.ts";
import { measureLimit } from "./limit.ts";
import { measureProjects } from "./projects.ts";
import { measureRivals } from "./rivals.ts";
import { measureStartup } from "./startup.ts";

type Benchmark = (newDatabase: NewDatabase) => Promise<readonly string[]>;

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  floor: measureFloor,
  limit: measureLimit,
  latency: measureLatency,
  rivals: measureRivals,
  startup: measureStartup,
  projects: measureProjects,
};

/** The benchmark that takes as long as all others together. */
const ONLY_BY_NAME = "projects";

const server = await startServer(process.env, (line) => void process.stdout.write(`${line}\n`));
const made: string[] = [];
try {
  const names = process.argv.slice(2);
  for (const [name, run] of Object.entries(BENCHMARKS)) {
    if (names.length > 0 ? !names.includes(name) : name === ONLY_BY_NAME) continue;
    const lines = await run(async () => {
      const database = `usage_export_bench_${randomBytes(4).toString("hex")}`;
      await runStatement(server.url, `create database ${database}`);
      made.push(database);
      // The test servers log every statement with its parameters, which takes longer than the statement itself.
      await runStatement(server.url, `alter database ${database} set log_statement = 'none'`);
      return databaseUrl(server.url, database);
    });
    process.stdout.write(`${lines.join("\n")}\n`);
  }
} finally {
  for (const database of made) await runStatement(server.url, `drop database ${database} with (force)`);
  await server.stop();
}
