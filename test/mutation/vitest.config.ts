import path from "node:path";
import { defineConfig } from "vitest/config";
import { LIMITS } from "../support/limits.ts";

/** Tests of pure code: mutation testing runs them thousands of times, so none needs a database or starts a program. */
export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    ...LIMITS,
    pool: "threads",
    isolate: false,
    include: [
      "test/{config,keys,schedule,show,usage}/**/*.test.ts",
      "test/facts/answer.test.ts",
      "test/health/{conditions,metrics,notifications}.test.ts",
      "test/web/dashboard/{overview,pages}.test.ts",
    ],
    exclude: ["test/usage/new-dimension.test.ts"],
  },
});
