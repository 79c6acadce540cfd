#!/usr/bin/env node
// The program's one entry, and the one place that sets an exit status.

import { enableCompileCache } from "node:module";
import path from "node:path";
import { setFlagsFromString } from "node:v8";
import { AppError } from "./errors.ts";

// Halves the time to start. Beside the packages, not in the system's folder for temporary files: what stands there is run.
enableCompileCache(path.join(import.meta.dirname, "../node_modules/.cache/usage-export"));
// Answers come and go, and little of them stays: collected early, a million rows take as much memory as ten thousand.
for (const flag of ["--semi-space-growth-factor=1", "--heap-growing-percent=30"]) setFlagsFromString(flag);
// A report of a crash would hold the environment, and with it keys and passwords. The types do not know the field yet.
Object.assign(process.report, { excludeEnv: true });
const { runCommandLine } = await import("./cli/command-line.ts");

const EXIT_MS = 500;

// A reader that has seen enough closes the pipe; that is not a failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

// 0 all done, 1 something failed and what succeeded is stored, 2 the command line or the configuration is wrong.
process.exitCode = await runCommandLine(process.argv.slice(2), process.env, abortOnSignals("SIGINT", "SIGTERM"));
// All is closed by now. A connection that does not notice, as nobody answers at its other end, must not hold the process.
setTimeout(() => process.exit(), EXIT_MS).unref();

/** The first signal ends the work in order; a second one ends the process. */
function abortOnSignals(...names: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    for (const each of names) process.removeListener(each, stop);
    controller.abort(new AppError("stopped", `stopped by ${name}`));
  };
  for (const name of names) process.on(name, stop);
  return controller.signal;
}
