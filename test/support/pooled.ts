// A program: runs the tests of the database, and those whole-program tests that use the database most, through a pooler in transaction
// mode. Its arguments are passed to vitest.

import { spawnSync } from "node:child_process";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");
const VITEST = path.join(ROOT, "node_modules/vitest/vitest.mjs");

const COMMANDS = [
  ...["backfill/", "database/database-trouble", "database/migrate", "export/export", "export/windows"],
  ...[
    "rotation/rotate",
    "rotation/together",
    "start/database",
    "start/start",
    "recovery/recovery",
    "recovery/replicas",
  ],
];
const PARTS = ["test/db/", "test/support/database", "test/support/pool", ...COMMANDS.map((name) => `test/cli/${name}`)];

/** What a view answers to one statement is the same through a pooler, and migrations go past it. */
const WITHOUT = ["views", "report", "migrations"].flatMap((folder) => ["--exclude", `test/db/${folder}/**`]);

const { status } = spawnSync(
  process.execPath,
  [VITEST, "run", "--config", "test/vitest.config.ts", ...PARTS, ...WITHOUT, ...process.argv.slice(2)],
  { cwd: ROOT, env: { ...process.env, TEST_POOLER: "pgbouncer" }, stdio: "inherit" },
);
process.exitCode = status ?? 1;
