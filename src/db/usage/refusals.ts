// Days that could not be read because the service refused the key: when they are read again.

import { sql } from "kysely";
import type { Source } from "../../usage/dimensions.ts";
import type { Database } from "../connection/database.ts";
import { execute } from "../connection/transaction.ts";

/** Long ago, so that the days are due at once. */
const AT_ONCE = sql`to_timestamp(0)`;

/** The key of the project works: the days that it was refused for are read again at once, and no longer count as refused. */
export async function endRefusals(db: Database, projectId: string, source: Source): Promise<void> {
  await execute(
    db,
    sql`
      update usage_export.slice sl set attempted_at = ${AT_ONCE}, failures = 0, error_code = null,
        error = 'the key was refused, and works since: the day is read again'
      from usage_export.series s
      where s.series_id = sl.series_id and s.project_id = ${projectId} and s.source = ${source}
        and sl.status = 'failed' and sl.error_code = 'unauthorized'
    `,
  );
}

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
