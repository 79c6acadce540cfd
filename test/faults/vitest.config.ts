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
    // Few cases mostly wait. Of many there are always some that compute.
    maxConcurrency: process.env.FAULTS === "all" ? 2 : 3,
    teardownTimeout: 20_000,
    ...LIMITS,
  },
});
