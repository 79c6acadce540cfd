import path from "node:path";
import { defineConfig } from "vitest/config";
import { LIMITS } from "./support/limits.ts";
import { longestFirst } from "./support/longest-first.ts";

// The processes of the tests inherit this variable, so that they do not all compile the same packages.
process.env.NODE_COMPILE_CACHE ??= path.join(import.meta.dirname, "../node_modules/.cache/tests");

/** The files whose tests need neither a database nor a program. */
const PURE = "test/{config,schedule,show,usage}/**/!(new-dimension).test.ts";

/** These files take a minute or more, nearly all of it waiting, so they begin first. */
const LONGEST = [
  "recovery/interruptions.",
  "service/limits.",
  "recovery/workers.",
  "recovery/recovery.",
  "cli/database/embedded.",
];

/** Files share processes, as loading the sources anew takes longer than most tests. So what a file changes, it puts back. */
const COMMON = { setupFiles: "test/support/same-day.ts", pool: "forks", isolate: false, ...LIMITS } as const;

export default defineConfig({
  root: path.join(import.meta.dirname, ".."),
  test: {
    // Tests mostly wait: for the database, for programs that they start, for a lease to expire. So more run at once than there are cores.
    maxWorkers: 8,
    teardownTimeout: 20_000,
    sequence: { sequencer: longestFirst(LONGEST) },
    projects: [
      { test: { ...COMMON, name: "pure", include: [PURE] } },
      {
        test: {
          ...COMMON,
          name: "whole",
          include: ["test/**/*.test.ts"],
          exclude: [PURE],
          globalSetup: "test/support/global-setup.ts",
        },
      },
    ],
  },
});
