import path from "node:path";
import { defineConfig } from "vitest/config";
import { LIMITS } from "../support/limits.ts";
import { longestFirst } from "../support/longest-first.ts";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/faults/**/*.faults.ts"],
    globalSetup: "test/support/global-setup.ts",
    setupFiles: "test/support/same-day.ts",
    sequence: {
      sequencer: longestFirst(["sabotage.", "worker.", "rotation.", "export.", "backfill.", "answers.", "migration."]),
    },
    pool: "forks",
    maxWorkers: 3,
    // A few cases mostly wait, so more of them can run at once. Among many, some always compute.
    maxConcurrency: process.env.FAULTS === "all" ? 2 : 3,
    teardownTimeout: 20_000,
    ...LIMITS,
  },
});
