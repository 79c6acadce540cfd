// Reads the views of estimated cost, in the form of the tests' own calculation.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import type { Cost } from "../usage/expected-costs.ts";

/** Numbers without superfluous zeros. */
export async function storedCosts(db: Database): Promise<readonly Cost[]> {
  const { rows } = await sql<Cost>`
    select project_id as project, usage_date::text as day, model, endpoint, method, metric, status, currency,
      trim_scale(quantity)::text as quantity, trim_scale(price)::text as price, trim_scale(amount)::text as amount,
      trim_scale(tier_above)::text as tier
    from bi.cost_estimated
  `.execute(db);
  return rows;
}

/** In an order that depends on the values only. */
export function inOrder<T extends object>(rows: readonly T[]): readonly T[] {
  const key = (row: T) => JSON.stringify(Object.entries(row).sort());
  return rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}
