// The share of a process in the rate limit of a service, which all processes on a database keep together.

import { randomUUID } from "node:crypto";
import { type Config, originOf } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { pauseCalls, releaseLease, renewLease } from "../db/rate-limit.ts";
import type { RateLease } from "../service/rate-lease.ts";

export function leaseOf({ service }: Config, db: Database): RateLease {
  const { requestsPerSecond, maxConcurrent } = service;
  const limit = { service: originOf({ service }), requestsPerSecond, maxConcurrent };
  const id = randomUUID();
  return {
    renew: (demand) => renewLease(db, limit, id, demand),
    reportPause: (ms) => pauseCalls(db, limit.service, ms),
    release: (nextStartMs) => releaseLease(db, limit.service, id, nextStartMs),
  };
}
