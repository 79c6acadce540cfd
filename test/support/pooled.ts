// A program: runs the tests of what the program writes to the database, and those whole-program tests that use the database most,
// through a pooler in transaction mode. Its arguments are passed to vitest.

import { spawnSync } from "node:child_process";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");
const VITEST = path.join(ROOT, "node_modules/vitest/vitest.mjs");

const COMMANDS = ["database/database-trouble", "export/export", "rotation/rotate", "start/start", "recovery/replicas"];
/** What writes, locks or waits. What a view answers is the same through a pooler, and migrations go past it. */
const FOLDERS = ["connection", "jobs", "keys", "usage", "notifications", "rate-limit", "recovery"];
const PARTS = [
  ...FOLDERS.map((name) => `test/db/${name}`),
  ...["test/support/database", "test/support/pool"],
  ...COMMANDS.map((name) => `test/cli/${name}`),
];

const { status } = spawnSync(
  process.execPath,
  [VITEST, "run", "--config", "test/vitest.config.ts", ...PARTS, ...process.argv.slice(2)],
  { cwd: ROOT, env: { ...process.env, TEST_POOLER: "pgbouncer" }, stdio: "inherit" },
);
process.exitCode = status ?? 1;
