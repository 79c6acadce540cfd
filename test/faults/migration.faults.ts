// Interrupts `migrate` at every statement and every answer, on an empty database, alone and beside two others. One ordinary `migrate`
// follows.

import { sql } from "kysely";
import { openPostgres } from "../../src/db/connection/database.ts";
import { requireCurrentSchema } from "../../src/db/connection/migrate.ts";
import { emptyDatabase } from "../db/connection/empty-database.ts";
import { schemaText } from "../db/connection/schema-text.ts";
import { testDatabase } from "../support/database.ts";
import { passwordsIn } from "../support/leaks.ts";
import { startProgram } from "../support/program.ts";
import type { ProgramEnd } from "./case-evidence.ts";
import { REPLICAS } from "./case-plan.ts";
import { converges, mistaken } from "./check-conduct.ts";
import { type DecideFault, PASS } from "./fault-decision.ts";
import { endOf, interruptions, type Stage } from "./interrupt.ts";
import { shorterLimits } from "./lab.ts";
import { leakViolations } from "./leak-violations.ts";
import { startPostgresFront } from "./postgres-front.ts";
import { sweepKinds } from "./sweep-kinds.ts";

/** A program without an answer of the database waits as long as a migration may take; a test kills it earlier. */
const PROGRAM_MS_MAX = 45_000;

const { db: migrated } = await testDatabase();

type Migrating = Stage & { readonly url: string; readonly ends: readonly ProgramEnd[] };

async function openDatabase(): Promise<Migrating> {
  const opened = new AsyncDisposableStack();
  const { directUrl: url } = opened.use(await emptyDatabase());
  const decideFault: DecideFault = (event) => stage.decideFault(event);
  const ends: ProgramEnd[] = [];
  const stage: Migrating = {
    decideFault: () => PASS,
    url,
    ends,
    async start(who, command) {
      const database = opened.use(await startPostgresFront(url, { who, decideFault, rewrite: shorterLimits }));
      const program = opened.use(
        startProgram(command, { env: { DATABASE_URL: database.url }, timeoutMs: PROGRAM_MS_MAX }),
      );
      return { who, program, database, startedAt: performance.now(), command: command.join(" ") };
    },
    async end(running) {
      const end = await endOf(running);
      ends.push(end);
      return end;
    },
    leaks: (serverLog) => {
      const texts = { output: ends.map(({ output }) => output).join("\n") };
      return leakViolations(passwordsIn(url), { texts, databaseUrl: url, serverLog });
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  return stage;
}

const BESIDE: readonly string[] = REPLICAS.slice(1);

async function check({ url, ends }: Migrating, recovery: string | undefined): Promise<string[]> {
  const failed = ends.filter(({ who, status }) => BESIDE.includes(who) && status !== 0);
  return [
    ...mistaken(ends),
    ...failed.map(({ output }) => `I8: a migrate beside the one with the fault failed: ${output}`),
    ...converges({ recovery, programs: ends }),
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
      ...(queues.length === 2 ? [] : [`there are ${queues.length} queues and not 2`]),
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
