// A program: runs all parts of the fault harness, with FAULTS=all unless the environment says otherwise (see scope.ts), and prints one
// table of what they found. Arguments go to vitest, such as the name of a part to run alone.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { figuresTable } from "./figures-table.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const VITEST = path.join(ROOT, "node_modules/vitest/vitest.mjs");

const folder = mkdtempSync(path.join(tmpdir(), "usage-export-faults-"));
const figures = path.join(folder, "figures.jsonl");
writeFileSync(figures, "");
const { FAULTS = "all", FAULTS_SEED = "1" } = process.env;
process.stdout.write(`FAULTS=${FAULTS} FAULTS_SEED=${FAULTS_SEED}\n`);
const { status } = spawnSync(
  process.execPath,
  [VITEST, "run", "--config", "test/faults/vitest.config.ts", ...process.argv.slice(2)],
  { cwd: ROOT, env: { ...process.env, FAULTS, FAULTS_SEED, FAULTS_FIGURES: figures }, stdio: "inherit" },
);
process.stdout.write(`\n${figuresTable(readFileSync(figures, "utf8"))}`);
rmSync(folder, { recursive: true });
process.exitCode = status ?? 1;
