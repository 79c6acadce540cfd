// Helpers of the keepers: programs that each run a server for the tests until standard input ends.

import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { setTimeout } from "node:timers/promises";
import { WAIT_MS_MAX } from "./limits.ts";
import { runStatement } from "./postgres-admin.ts";
import { listen } from "./scripted-server.ts";

const POLL_MS = 20;

export type Owner = { readonly uid?: number; readonly gid?: number };

/** Database servers refuse to run as root. Every system has the user nobody. */
export function serverOwner(): Owner {
  if (process.getuid?.() !== 0) return {};
  const idOf = (option: string) => Number(execFileSync("id", [option, "nobody"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

export async function freePort(): Promise<number> {
  await using server = await listen(createServer());
  return server.port;
}

/** Writes the server's address as soon as it accepts connections. Ends the server with `endSignal` when standard input ends, or at SIGTERM. */
export async function keepServer(
  server: ChildProcess,
  url: string,
  logFile: string,
  endSignal: NodeJS.Signals,
): Promise<void> {
  const ended = once(server, "exit");
  try {
    await untilConnectable(server, url, logFile);
    process.stdout.write(`${JSON.stringify({ url, logFile })}\n`);
    await Promise.race([inputEnds(), once(process, "SIGTERM"), ended]);
  } finally {
    server.kill(endSignal);
    await ended;
  }
}

/** Throws with the server's log if the server ends, or accepts no connection in time. */
async function untilConnectable(server: ChildProcess, url: string, logFile: string): Promise<void> {
  const endMs = Date.now() + WAIT_MS_MAX;
  while (server.exitCode === null && Date.now() < endMs) {
    const connected = await runStatement(url, "select 1").then(
      () => true,
      () => false,
    );
    if (connected) return;
    await setTimeout(POLL_MS);
  }
  throw new Error(`the server accepts no connection; its log:\n${await readFile(logFile, "utf8")}`);
}

async function inputEnds(): Promise<void> {
  for await (const _ of process.stdin);
}
