// Interrupts `migrate` at every statement and every answer of it, on a database that has nothing and on one of an older version,
// alone and beside two others, and lets one ordinary `migrate` follow.

import fs from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { FileMigrationProvider, Migrator } from "kysely/migration";
import { afterAll, test } from "vitest";
import { openPostgres } from "../../src/db/database.ts";
import { requireCurrentSchema } from "../../src/db/migrate.ts";
import { emptyDatabase } from "../db/empty-database.ts";
import { schemaText } from "../db/schema-text.ts";
import { copyDatabase, type DatabaseUrls } from "../support/database.ts";
import { type Program, startProgram } from "../support/program.ts";
import { arm } from "./arm.ts";
import { type Action, type FaultEvent, type Gate, PASS } from "./gate.ts";
import { startPostgresFront } from "./postgres-front.ts";
import { every, LIMIT, sweep } from "./sweep.ts";

const FILE = "migration.faults.ts";
const SCHEMA = path.join(import.meta.dirname, "../db/schema.txt");
const MIGRATIONS = path.join(import.meta.dirname, "../../migrations");
const OLDER = "0003_create_key_ledger";
const WHO = ["a", "b", "c"];
const STORED = "a project of the older version";

const older = await olderDatabase();
afterAll(() => older[Symbol.asyncDispose]());

/** A database of an older version, with a row of it. */
async function olderDatabase(): Promise<AsyncDisposable & DatabaseUrls> {
  const database = await emptyDatabase();
  const db = openPostgres(database.directUrl);
  const provider = new FileMigrationProvider({ fs, path, migrationFolder: MIGRATIONS });
  const migrator = new Migrator({ db, provider, migrationTableSchema: "usage_export" });
  const { error } = await migrator.migrateTo(OLDER);
  if (error) throw error;
  await sql`
    insert into usage_export.series (project_id, project, "grouping", filter_key, filter)
    values ('project-1', ${STORED}, 'none', '{}', 'all')
  `.execute(db);
  await db.destroy();
  return database;
}

const BEGINNINGS = ["empty", "older"] as const;
type Beginning = (typeof BEGINNINGS)[number];

type Migrating = AsyncDisposable & { readonly url: string; readonly start: (who: string) => Promise<Program> };

async function openDatabase(beginning: Beginning, gate: Gate): Promise<Migrating> {
  const opened = new AsyncDisposableStack();
  const { directUrl } = opened.use(beginning === "empty" ? await emptyDatabase() : await copyDatabase(older));
  return {
    url: directUrl,
    async start(who) {
      const front = opened.use(await startPostgresFront(directUrl, { who, gate }));
      return opened.use(startProgram(["migrate"], { env: { DATABASE_URL: front.url } }));
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function calibrate(beginning: Beginning): Promise<number> {
  const events: FaultEvent[] = [];
  await using database = await openDatabase(beginning, (event) => {
    events.push(event);
    return PASS;
  });
  const { status, stderr } = await (await database.start("a")).ended;
  if (status !== 0) throw new Error(`the migration that nothing happens to ended with ${status}: ${stderr}`);
  return events.length;
}

async function runCase(name: string): Promise<readonly string[]> {
  const [, beginning, migrators, kind, point] =
    /^(empty|older), (\d) migrators, (kill|cut), point (\d+)$/.exec(name) ?? [];
  let victim: Program | undefined;
  const act = (): Action => {
    if (kind === "kill") victim?.kill("SIGKILL");
    return { kind: "cut" };
  };
  const fault = arm({ who: "a", point: Number(point), fits: () => true, act });
  await using database = await openDatabase(beginning === "empty" ? "empty" : "older", fault.gate);
  victim = await database.start("a");
  const others = await Promise.all(WHO.slice(1, Number(migrators)).map(database.start));
  const [hurt, ...unhurt] = await Promise.all([victim, ...others].map(({ ended }) => ended));
  const healed = await (await database.start("healer")).ended;
  const where = fault.hit() ? `${fault.hit()?.side}: ${fault.hit()?.name}` : "not reached";
  const found = [
    ...(hurt?.stderr.includes("    at ") ? [`migrate took a fault for a mistake of the program: ${hurt.stderr}`] : []),
    ...unhurt.filter(({ status }) => status !== 0).map(({ stderr }) => `a migrate beside it failed: ${stderr}`),
    ...(healed.status === 0 ? [] : [`the next migrate ended with ${healed.status}: ${healed.stderr}`]),
    ...(await schemaViolations(database.url, beginning === "older")),
  ];
  return found.map((violation) => `${violation} [${name}; ${where}]`);
}

async function schemaViolations(url: string, hasRow: boolean): Promise<readonly string[]> {
  const db = openPostgres(url);
  try {
    const asReviewed = (await fs.readFile(SCHEMA, "utf8")).replaceAll(/^--.*\n/gm, "");
    const found = (await schemaText(db)) === asReviewed ? [] : ["the schema is not the one of test/db/schema.txt"];
    const current = await requireCurrentSchema(db).then(
      () => [],
      (error: Error) => [`the program refuses the schema: ${error.message}`],
    );
    const { rows: queues } = await sql`select from usage_export_queue.queue`.execute(db);
    const { rows: kept } = await sql`select from usage_export.series where project = ${STORED}`.execute(db);
    return [
      ...found,
      ...current,
      ...(queues.length === 3 ? [] : [`there are ${queues.length} queues and not 3`]),
      ...(kept.length === Number(hasRow) ? [] : ["a row that was there is not there any more"]),
    ];
  } finally {
    await db.destroy();
  }
}

test.each(["kill", "cut"])("migrations: %s", LIMIT, async (kind) => {
  const cases = async () => {
    const chosen: string[] = [];
    for (const beginning of BEGINNINGS) {
      const points = Array.from({ length: await calibrate(beginning) }, (_, index) => index + 1);
      chosen.push(...every(37, points).map((point) => `${beginning}, 1 migrators, ${kind}, point ${point}`));
      chosen.push(...every(101, points).map((point) => `${beginning}, 3 migrators, ${kind}, point ${point}`));
    }
    return chosen;
  };
  await sweep({ part: `migrate, ${kind}`, file: FILE, test: `migrations: ${kind}`, cases, atOnce: 3, run: runCase });
});
