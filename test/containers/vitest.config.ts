import path from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/containers/*.check.ts"],
    // The checks are steps of one trial. After a failure the rest would only wait.
    bail: 1,
    testTimeout: 120_000,
    // The first build fetches two images.
    hookTimeout: 900_000,
  },
});
