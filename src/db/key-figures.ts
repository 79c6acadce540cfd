// Reads how old the keys are, and what a person should know of them.

import { sql } from "kysely";
import { needsAttention } from "../keys/plan.ts";
import { type Figure, figure } from "./figure.ts";
import type { Tx } from "./transaction.ts";

export type RotationRow = Readonly<
  Record<"pending" | "active" | "draining" | "orphan" | "dueForRemoval" | "longDueForRemoval", number>
> & {
  readonly rotation: string;
  readonly ageSeconds: number | null;
  readonly failedAttempts: number;
  readonly lastError: string | null;
  readonly fallback: boolean;
};

export async function rotationRows(tx: Tx): Promise<readonly RotationRow[]> {
  const { rows } = await sql<RotationRow>`
    select r.name as rotation, r.failed_attempts as "failedAttempts", r.last_error as "lastError",
      extract(epoch from now() - max(coalesce(k.put_back_at, k.requested_at)) filter (where k.state = 'active'))::double precision
        as "ageSeconds",
      count(*) filter (where k.state = 'pending')::integer as pending,
      count(*) filter (where k.state = 'active')::integer as active,
      count(*) filter (where k.state = 'draining')::integer as draining,
      count(*) filter (where k.state = 'orphan')::integer as orphan,
      count(*) filter (where k.state <> 'retired' and k.due_for_removal_at <= now())::integer as "dueForRemoval",
      count(*) filter (where k.state <> 'retired' and k.due_for_removal_at <= now() - interval '1 hour')::integer
        as "longDueForRemoval",
      exists (
        select from usage_export.key_event e
        where e.rotation = r.name and e.event = 'fallback'
          and e.at > greatest(max(k.active_since) filter (where k.state = 'active'), now() - interval '7 days')
      ) as fallback
    from usage_export.rotation r
    left join usage_export.api_key k on k.rotation = r.name
    group by r.name
  `.execute(tx);
  return rows;
}

export async function rotationFigures(tx: Tx): Promise<readonly Figure[]> {
  const rows = await rotationRows(tx);
  return rows.flatMap(
    ({ rotation, ageSeconds, failedAttempts, fallback, dueForRemoval, pending, active, draining, orphan }) => [
      ...figure("api_key_age_seconds", { rotation }, ageSeconds),
      ...Object.entries({ pending, active, draining, orphan }).flatMap(([state, keys]) =>
        figure("api_keys", { rotation, state }, keys),
      ),
      ...figure("api_keys_due_for_removal", { rotation }, dueForRemoval),
      ...figure("api_key_fallback", { rotation }, fallback ? 1 : 0),
      ...figure("rotation_failed_attempts", { rotation }, failedAttempts),
      ...figure("rotation_needs_attention", { rotation }, needsAttention(failedAttempts) ? 1 : 0),
    ],
  );
}
