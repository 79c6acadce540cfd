#!/usr/bin/env node
// The program's only entry point, and the only place that sets an exit status.

import module from "node:module";
import path from "node:path";
import { AppError } from "./errors.ts";
import { PACKAGE_FOLDER } from "./package-files.ts";

// SIGHUP makes a worker read its configuration again. Until the worker handles the signal, Node's default would end the process.
if (process.argv.includes("start")) process.on("SIGHUP", () => {});

// An older Node would fail with an error about a missing function.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 15)) {
  process.stderr.write(`usage-export: needs Node 22.15 or later, and this is ${process.version}\n`);
  process.exit(1);
}

// A cache of compiled code halves the time to start. Node's default is a folder in /tmp, where others could put code that would run here.
const cache = module.enableCompileCache(path.join(PACKAGE_FOLDER, "node_modules/.cache/usage-export"));
if (cache.status === module.constants.compileCacheStatus.FAILED && process.env.HOME) {
  module.enableCompileCache(path.join(process.env.HOME, ".cache/usage-export"));
}
// Without this, a crash report would contain the environment, with keys and passwords. The types do not have the field yet.
Object.assign(process.report, { excludeEnv: true });
// Node 22 warns that its SQLite, used to lock the folder of the embedded database, is experimental. A user can't act on that.
const printWarnings = process.listeners("warning");
process.removeAllListeners("warning").on("warning", (warning) => {
  if (warning.name !== "ExperimentalWarning") for (const print of printWarnings) print(warning);
});

const EXIT_MS = 500;
/** The exit status if the process ends before its command does. Node uses 13 for a top-level await that never settles. */
const UNFINISHED = 13;

let isAnswerLost = false;
// A reader that closes the pipe is no failure. An answer that can't be written, such as to a full disk, is one.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") return;
  process.stderr.write(`usage-export: the answer could not be written to standard output: ${error.message}\n`);
  isAnswerLost = true;
  process.exitCode ||= 1;
});
// If the log can't be written, the work continues: there is no other place to report that.
process.stderr.on("error", () => {});

void main();

// A function, because the bundle is CommonJS, which has no await at the top level.
async function main(): Promise<void> {
  process.exitCode = UNFINISHED;
  const { runCommandLine } = await import("./cli/commands.ts");
  const status = await runCommandLine(process.argv.slice(2), process.env, abortOnSignals("SIGINT", "SIGTERM"));
  process.exitCode = status || (isAnswerLost ? 1 : 0);
  // Everything is closed by now. A connection whose other end does not answer must not keep the process running.
  setTimeout(endProcess, EXIT_MS).unref();
}

/** `process.exit` waits for file and DNS calls, which may hang for ever. `execve` replaces this program by one that exits at once. */
function endProcess(): void {
  const isBlocked = process.getActiveResourcesInfo().some((kind) => /^(FSReq|GetAddrInfo)/.test(kind));
  if (isBlocked) process.execve?.(process.execPath, [process.execPath, "-e", `process.exit(${process.exitCode})`], {});
  process.exit();
}

/** A second signal ends the process at once. */
function abortOnSignals(...names: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    for (const other of names) process.removeListener(other, stop);
    controller.abort(new AppError("stopped", `stopped by ${name}`));
  };
  for (const name of names) process.on(name, stop);
  return controller.signal;
}
