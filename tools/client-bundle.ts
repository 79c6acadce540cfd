// Bundles the script of the pages for the browser. Used by the build, and by a monitor that runs from the sources.

import path from "node:path";
import { type OutputChunk, rolldown } from "rolldown";

const ROOT = path.join(import.meta.dirname, "..");
/** Baseline of the platform in 2023. */
const OLDEST_BROWSERS = ["chrome111", "firefox113", "safari16.4"];

/** One file, because everything in it is needed at once. */
export async function clientBundle(): Promise<OutputChunk> {
  await using bundle = await rolldown({
    cwd: ROOT,
    input: { app: "src/web/client/main.ts" },
    platform: "browser",
    // As in build.ts: the licences are found by the same paths.
    resolve: { symlinks: false },
    tsconfig: false,
    transform: { target: OLDEST_BROWSERS, define: { "process.env.NODE_ENV": '"production"' } },
    onLog(level, log) {
      if (level === "warn") throw new Error(`the bundler warns: ${log.message}`);
    },
  });
  const { output } = await bundle.generate({
    format: "esm",
    minify: true,
    entryFileNames: "[name]-[hash].js",
    comments: { legal: false, annotation: false, jsdoc: false },
  });
  if (output.length !== 1) throw new Error(`expected one file for the browser, got ${output.length}`);
  return output[0];
}
