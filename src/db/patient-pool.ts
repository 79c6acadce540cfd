// A pool that waits for a server that went away, so that a restart or a failover of it costs a run some time and no slices.

import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresPool, PostgresPoolClient } from "kysely";
import { isAway } from "./away.ts";

export type Patience = {
  /** How long a server that was reached before is waited for. */
  readonly ms: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** What a statement may still take once the signal came. */
  readonly stoppingMs: number;
};

const LOOK_MS = 500;

/** Until the server was reached once nothing is waited for: that is a mistake in its address more often than an outage. */
export function patientPool(pool: PostgresPool, { ms, signal }: Patience): PostgresPool {
  let reached = false;
  return {
    options: pool.options,
    ...(pool.Client && { Client: pool.Client }),
    end: () => pool.end(),
    async connect(): Promise<PostgresPoolClient> {
      const untilMs = performance.now() + ms;
      for (;;) {
        try {
          const client = await pool.connect();
          reached = true;
          return client;
        } catch (error) {
          if (!reached || !isAway(error) || signal.aborted || performance.now() > untilMs) throw error;
          await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
        }
      }
    },
  };
}
