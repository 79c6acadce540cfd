import path from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/faults/**/*.faults.ts"],
    globalSetup: "test/support/global-setup.ts",
    pool: "forks",
    maxWorkers: 2,
    maxConcurrency: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
});
