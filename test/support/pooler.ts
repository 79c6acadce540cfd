// Starts PgBouncer in transaction mode in front of the test server, in a process of its own, if TEST_POOLER is set.

import { fileURLToPath } from "node:url";
import { z } from "zod";
import { startKept } from "./kept-process.ts";

const KEEPER = fileURLToPath(new URL("./pooler-keeper.ts", import.meta.url));
const Ready = z.object({ url: z.string() });

export const POOLER_PROGRAM = "pgbouncer";

/** Small, so that clients always share server connections. */
export const POOL_SIZE = 5;

export type Pooler = {
  /** The URL of the server through the pooler. */
  readonly url: string;
  readonly stop: () => Promise<void>;
};

/** Returns undefined if TEST_POOLER is not set. */
export async function startPooler(
  env: Readonly<Record<string, string | undefined>>,
  serverUrl: string,
): Promise<Pooler | undefined> {
  if (env.TEST_POOLER === undefined) return undefined;
  if (env.TEST_POOLER !== "pgbouncer") {
    throw new Error(`TEST_POOLER: expected pgbouncer, got "${env.TEST_POOLER}"`);
  }
  // Debian installs it in a folder that is only in root's PATH.
  const PATH = `${env.PATH}:/usr/sbin`;
  const { ready, stop } = await startKept("PgBouncer", KEEPER, { PATH, POOLED_SERVER_URL: serverUrl });
  return { ...Ready.parse(ready), stop };
}
