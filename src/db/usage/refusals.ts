// Days that could not be read because the service refused the key: when they are read again.

import { sql } from "kysely";
import type { Database } from "../connection/database.ts";
import { execute } from "../connection/transaction.ts";

/** Long ago, so that the days are due at once. */
export const AT_ONCE = sql`to_timestamp(0)`;

/** Whoever starts a worker may have given a project another key. */
export async function retryRefusals(db: Database): Promise<void> {
  await execute(
    db,
    sql`
      update usage_export.slice set attempted_at = ${AT_ONCE}, failures = 0
      where status = 'failed' and error_code = 'unauthorized'
    `,
  );
}
