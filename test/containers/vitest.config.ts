import path from "node:path";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/containers/*.check.ts"],
    // One trial, looked at from the start to the end: after a failure the rest would only wait.
    bail: 1,
    testTimeout: 120_000,
    // The first build fetches two images.
    hookTimeout: 900_000,
  },
});
