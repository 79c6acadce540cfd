import path from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/package/*.check.ts"],
    setupFiles: "test/support/same-day.ts",
    testTimeout: 600_000,
    // Builds, packs, and installs from the registry.
    hookTimeout: 600_000,
  },
});
