// Interrupts `migrate` at every statement and answer, alone and beside two others. Then one ordinary `migrate` must succeed.

import { sql } from "kysely";
import { openPostgres } from "../../src/db/connection/database.ts";
import { requireCurrentSchema } from "../../src/db/connection/migrate.ts";
import { JOB_KINDS } from "../../src/db/jobs/jobs.ts";
import { emptyDatabase } from "../db/connection/empty-database.ts";
import { schemaText } from "../db/connection/schema-text.ts";
import { testDatabase } from "../support/database.ts";
import { passwordsIn } from "../support/leaks.ts";
import { startProgram } from "../support/program.ts";
import { REPLICAS } from "./case-plan.ts";
import { failedRecovery, stackTraces } from "./check.ts";
import { interruptions, leakViolations, openStage, type Stage } from "./interrupt.ts";
import { sweepKinds } from "./sweep.ts";

/** A program without an answer of the database waits as long as a migration may take; a test kills it earlier. */
const PROGRAM_MS_MAX = 45_000;

const { db: migrated } = await testDatabase();

type Migrating = Stage & { readonly url: string };

async function openDatabase(): Promise<Migrating> {
  const opened = new AsyncDisposableStack();
  const { directUrl: url } = opened.use(await emptyDatabase());
  const stage = openStage({
    opened,
    databaseUrl: url,
    start: (_, command, DATABASE_URL) => startProgram(command, { env: { DATABASE_URL }, timeoutMs: PROGRAM_MS_MAX }),
  });
  const leaks = (serverLog: boolean) => leakViolations(passwordsIn(url), stage.ends, { databaseUrl: url, serverLog });
  return Object.assign(stage, { url, leaks });
}

const BESIDE: readonly string[] = REPLICAS.slice(1);

async function check({ url, ends }: Migrating, recovery: string | undefined): Promise<string[]> {
  const failed = ends.filter(({ who, status }) => BESIDE.includes(who) && status !== 0);
  return [
    ...stackTraces(ends),
    ...failed.map(({ output }) => `I8: a migrate beside the one with the fault failed: ${output}`),
    ...failedRecovery({ recovery, programs: ends }),
    ...(recovery === undefined ? [] : await schemaViolations(url)),
  ];
}

async function schemaViolations(url: string): Promise<readonly string[]> {
  const db = openPostgres(url);
  try {
    const isWhole = (await schemaText(db)) === (await schemaText(migrated));
    const current = await requireCurrentSchema(db).then(
      () => [],
      (error: Error) => [`the program refuses the schema: ${error.message}`],
    );
    const { rows: queues } = await sql`select from usage_export_queue.queue`.execute(db);
    return [
      ...(isWhole ? [] : ["the schema is not that of a migrated database"]),
      ...current,
      ...(queues.length === JOB_KINDS.length ? [] : [`there are ${queues.length} queues and not ${JOB_KINDS.length}`]),
    ];
  } finally {
    await db.destroy();
  }
}

sweepKinds(
  interruptions({ part: "migrate", file: "migration.faults.ts", command: ["migrate"], open: openDatabase, check }),
  [
    { kind: "kill", ci: [257, 0, 769], all: [17, 0, 61], atOnce: 2 },
    { kind: "kill twice", ci: [389], all: [53], atOnce: 2 },
    { kind: "cut", ci: [257, 0, 769], all: [17, 0, 61], atOnce: 2 },
    { kind: "stop and continue", ci: [769], all: [97], atOnce: 4 },
    { kind: "black hole", ci: [0], all: [97], atOnce: 8 },
    { kind: "SQL error before", ci: [2999], all: [397], atOnce: 2 },
    { kind: "SQL error after", ci: [2999], all: [397], atOnce: 2 },
  ],
);
