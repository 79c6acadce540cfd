import path from "node:path";
import { defineConfig } from "vitest/config";
import { LIMITS } from "../support/limits.ts";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/pages/**/*.check.ts"],
    globalSetup: "test/support/global-setup.ts",
    setupFiles: "test/support/same-day.ts",
    // A page waits for its browser and a browser for its page. Without this, two cores would run one file at a time.
    maxWorkers: 2,
    ...LIMITS,
  },
});
