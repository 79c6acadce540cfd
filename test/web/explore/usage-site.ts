// The page Usage and the read API over a test's database, without a worker.

import { pino } from "pino";
import type { Database } from "../../../src/db/connection/database.ts";
import { readByStatements } from "../../../src/db/connection/statements.ts";
import type { Run } from "../../../src/facts/scope.ts";
import type { HealthState } from "../../../src/health/state.ts";
import { framePage } from "../../../src/web/dashboard/frame.ts";
import { openApi } from "../../../src/web/explore/api.ts";
import { openUsagePage } from "../../../src/web/explore/usage-page.ts";
import type { Answer } from "../../../src/web/routes.ts";
import { healthState } from "../../health/sample-health-state.ts";
import { WELL } from "../test-monitor.ts";

/** Path to answer. The pages of another call are not in its cache. */
export function usageSite(db: Database, health: () => HealthState = healthState): Readonly<Record<string, Answer>> {
  const read = {
    readByStatements: <T>(work: (run: Run) => Promise<T>, signal: AbortSignal) =>
      readByStatements(db, work, { signal }),
  };
  const usagePage = openUsagePage({
    ...read,
    async framed(page, view, readContent) {
      const content = (await readContent(AbortSignal.timeout(5_000)))(health());
      return framePage({ page, view, health: health(), readiness: WELL, ...content });
    },
  });
  return { ...usagePage, ...openApi({ log: pino({ enabled: false }), version: "1.2.3", ...read }) };
}
