import path from "node:path";
import { defineConfig } from "vitest/config";
import { LIMITS } from "../support/limits.ts";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/pages/**/*.check.ts"],
    globalSetup: "test/support/global-setup.ts",
    setupFiles: "test/support/same-day.ts",
    // A test mostly waits for its browser, so two files at a time suit two cores. Vitest would run one at a time there.
    maxWorkers: 2,
    ...LIMITS,
  },
});
