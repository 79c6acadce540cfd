// PgBouncer in transaction mode in front of the test server, for runs that ask for it, kept by a process of its own.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { startKept } from "./kept-process.ts";

const KEEPER = fileURLToPath(new URL("./pooler-keeper.ts", import.meta.url));
const Ready = z.object({ url: z.string() });

export const POOLER_PROGRAM = "pgbouncer";

/** Few, so that clients share server connections all the time. */
export const POOL_SIZE = 5;

export type Pooler = {
  /** The server's own URL, through the pooler. */
  readonly url: string;
  readonly stop: () => Promise<void>;
};

/** Undefined where TEST_POOLER asks for none. */
export async function startPooler(
  env: Readonly<Record<string, string | undefined>>,
  serverUrl: string,
): Promise<Pooler | undefined> {
  if (env.TEST_POOLER === undefined) return undefined;
  if (env.TEST_POOLER !== "pgbouncer") {
    throw new Error(`TEST_POOLER: expected pgbouncer, got "${env.TEST_POOLER}"`);
  }
  // Debian puts it where only root looks.
  const PATH = `${env.PATH}:/usr/sbin`;
  const version = poolerVersion(PATH);
  const { ready, stop } = await startKept("PgBouncer", KEEPER, {
    PATH,
    POOLED_SERVER_URL: serverUrl,
    PGBOUNCER_VERSION: version,
  });
  return { ...Ready.parse(ready), stop };
}

/** Throws with the mend where it is not installed. */
export function poolerVersion(PATH: string): string {
  try {
    return execFileSync(POOLER_PROGRAM, ["--version"], { encoding: "utf8", env: { PATH } });
  } catch (cause) {
    throw new Error("TEST_POOLER is pgbouncer, and there is no program of that name: apt-get install pgbouncer", {
      cause,
    });
  }
}
