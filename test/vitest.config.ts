import path from "node:path";
import { defineConfig } from "vitest/config";
import { LIMITS } from "./support/limits.ts";

// Each file has a process of its own, and these would all compile the same packages. They inherit this variable.
process.env.NODE_COMPILE_CACHE ??= path.join(import.meta.dirname, "../node_modules/.cache/tests");

export default defineConfig({
  root: path.join(import.meta.dirname, ".."),
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global-setup.ts",
    pool: "forks",
    // Tests mostly wait: for the database, for programs that they start, for a lease to expire. So more run at once than there are cores.
    maxWorkers: 4,
    ...LIMITS,
    teardownTimeout: 20_000,
  },
});
