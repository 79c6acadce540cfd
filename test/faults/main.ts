// A program: runs all parts of the fault harness, with FAULTS=all unless the environment says otherwise (see scope.ts). Arguments go to
// vitest, such as the name of a part to run alone.

import { spawnSync } from "node:child_process";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");
const VITEST = path.join(ROOT, "node_modules/vitest/vitest.mjs");

const { FAULTS = "all", FAULTS_SEED = "1" } = process.env;
process.stdout.write(`FAULTS=${FAULTS} FAULTS_SEED=${FAULTS_SEED}\n`);
const { status } = spawnSync(
  process.execPath,
  [VITEST, "run", "--config", "test/faults/vitest.config.ts", ...process.argv.slice(2)],
  { cwd: ROOT, env: { ...process.env, FAULTS, FAULTS_SEED }, stdio: "inherit" },
);
process.exitCode = status ?? 1;
