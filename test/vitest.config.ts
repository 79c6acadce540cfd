import path from "node:path";
import { defineConfig } from "vitest/config";
import { LIMITS } from "./support/limits.ts";

// Each file has a process of its own, and these would all compile the same packages. They inherit this variable.
process.env.NODE_COMPILE_CACHE ??= path.join(import.meta.dirname, "../node_modules/.cache/tests");

/** Their tests need neither a database nor a program, and change nothing that another file could notice: the files share processes. */
const PURE = "test/{config,schedule,show,usage}/**/!(new-dimension).test.ts";

/** Projects ignore --exclude. Migrations go past a pooler. */
const EXCLUDED = process.env.TEST_POOLER ? ["test/db/connection/migrate.test.ts"] : [];

const COMMON = { setupFiles: "test/support/same-day.ts", pool: "forks", ...LIMITS } as const;

export default defineConfig({
  root: path.join(import.meta.dirname, ".."),
  test: {
    // Tests mostly wait: for the database, for programs that they start, for a lease to expire. So more run at once than there are cores.
    maxWorkers: 4,
    teardownTimeout: 20_000,
    projects: [
      { test: { ...COMMON, name: "pure", include: [PURE], exclude: EXCLUDED, isolate: false } },
      {
        test: {
          ...COMMON,
          name: "whole",
          include: ["test/**/*.test.ts"],
          exclude: [PURE, ...EXCLUDED],
          globalSetup: "test/support/global-setup.ts",
        },
      },
    ],
  },
});
