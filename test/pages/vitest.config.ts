import path from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/pages/**/*.check.ts"],
    globalSetup: "test/support/global-setup.ts",
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
