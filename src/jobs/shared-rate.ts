// The shares of a process in the rate limits of a service and of its keys, which all processes on a database keep together.

import { randomUUID } from "node:crypto";
import { type Config, originOf } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { limitOfKey, pauseCalls, releaseLease, renewLease, type ServiceLimit } from "../db/rate-limit.ts";
import type { RateLease } from "../service/rate-lease.ts";
import type { ServiceDeps } from "../service/service.ts";

export type Leases = Pick<ServiceDeps, "lease" | "leaseOf">;

export function leasesOf({ service }: Config, db: Database): Leases {
  const { requestsPerSecond, maxConcurrent } = service;
  const origin = originOf({ service });
  const id = randomUUID();
  const leaseOf = (limit: ServiceLimit): RateLease => ({
    renew: (demand) => renewLease(db, limit, id, demand),
    reportPause: (ms) => pauseCalls(db, limit.service, ms),
    release: (nextStartMs) => releaseLease(db, limit.service, id, nextStartMs),
  });
  return {
    lease: leaseOf({ service: origin, requestsPerSecond, maxConcurrent }),
    leaseOf: ({ name, ...own }) =>
      leaseOf({ requestsPerSecond, maxConcurrent, ...own, service: limitOfKey(origin, name) }),
  };
}
