import path from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/bi-client/*.check.ts"],
    globalSetup: "test/support/global-setup.ts",
    pool: "forks",
    // The office ends itself before.
    hookTimeout: 120_000,
  },
});
