#!/usr/bin/env node
// The program's one entry, and the one place that sets an exit status.

import module from "node:module";
import path from "node:path";
import { setFlagsFromString } from "node:v8";
import { AppError } from "./errors.ts";
import { PACKAGE_FOLDER } from "./package-files.ts";

// An older Node would end in an error that names a function of its own.
const NODE_MIN = 22;
if (Number.parseInt(process.versions.node, 10) < NODE_MIN) {
  process.stderr.write(`usage-export: needs Node ${NODE_MIN} or later, and this is ${process.version}\n`);
  process.exit(1);
}

// Halves the time to start. Beside the packages, not in the system's folder for temporary files: what stands there is run.
module.enableCompileCache(path.join(PACKAGE_FOLDER, "node_modules/.cache/usage-export"));
// Answers come and go, and little of them stays. Room for new objects grows once, while the program loads, and not with the
// answers: so a fifth of the time is saved, and a million rows take little more memory than ten thousand.
for (const flag of ["--semi-space-growth-factor=4", "--heap-growing-percent=100"]) setFlagsFromString(flag);
// A report of a crash would hold the environment, and with it keys and passwords. The types do not know the field yet.
Object.assign(process.report, { excludeEnv: true });
// Node 22 calls the SQLite that locks the embedded database's folder experimental: nothing that a user could act on.
const printWarnings = process.listeners("warning");
process.removeAllListeners("warning").on("warning", (warning) => {
  if (warning.name !== "ExperimentalWarning") for (const print of printWarnings) print(warning);
});
const { runCommandLine } = await import("./cli/command-line.ts");
setFlagsFromString("--semi-space-growth-factor=1");

const EXIT_MS = 500;

// A reader that has seen enough closes the pipe; that is not a failure. An answer that can't be given, to a full disk, is.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") return;
  process.stderr.write(`usage-export: standard output takes no more of the answer: ${error.message}\n`);
  process.exitCode ||= 1;
});
// Of a log that can't be written nobody can be told, and the work matters more.
process.stderr.on("error", () => {});

// 0 all done, 1 something failed and what succeeded is stored, 2 the command line or the configuration is wrong.
const status = await runCommandLine(process.argv.slice(2), process.env, abortOnSignals("SIGINT", "SIGTERM"));
if (status !== 0) process.exitCode = status;
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
