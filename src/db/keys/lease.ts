// Lets one process at a time rotate a key: by a lease, stored in the rotation's row, with a fencing number that only grows. A process
// that slept through its lease holds an old number and can't write with it. A session lock would not do: a pooler would hand the
// session to other clients.

import { sql } from "kysely";
import { AppError } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";

/** The holder renews its lease three times within this time. After a crash of the holder another process waits this long. */
export const LEASE_SECONDS = 10;

export type Lease = { readonly rotation: string; readonly fence: string };

/** Undefined while another process holds the lease. */
export async function takeLease(db: Database, rotation: string, owner: string): Promise<Lease | undefined> {
  return inTransaction(db, async (tx) => {
    await sql`
      insert into usage_export.rotation (name) values (${rotation}) on conflict do nothing
    `.execute(tx);
    // No lease is granted for longer than this, so a later end was stored before the clock was set back. That end is shortened: the
    // lease then expires soon, unless its holder still renews it.
    await sql`
      update usage_export.rotation set lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
      where name = ${rotation} and lease_until > clock_timestamp() + make_interval(secs => ${LEASE_SECONDS + 1})
    `.execute(tx);
    const { rows } = await sql<{ fence: string | number }>`
      update usage_export.rotation
      set lease_owner = ${owner}, lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS}),
        fence = fence + 1
      where name = ${rotation} and (lease_until is null or lease_until < clock_timestamp())
      returning fence
    `.execute(tx);
    return rows[0] && { rotation, fence: String(rows[0].fence) };
  });
}

/** Throws `stopped` if the lease was released, or expired and was taken by another process. */
export async function renewLease(db: Database, { rotation, fence }: Lease): Promise<void> {
  const { rows } = await inTransaction(db, (tx) =>
    sql`
      update usage_export.rotation
      set lease_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
      where name = ${rotation} and fence = ${fence}::bigint and lease_owner is not null
      returning name
    `.execute(tx),
  );
  if (rows.length === 0) throw leaseLost(rotation);
}

/** Does nothing if another process has the lease by now. */
export async function releaseLease(db: Database, { rotation, fence }: Lease): Promise<void> {
  await inTransaction(db, (tx) =>
    sql`
      update usage_export.rotation set lease_until = null, lease_owner = null
      where name = ${rotation} and fence = ${fence}::bigint
    `.execute(tx),
  );
}

/** Locks the rotation's row, so that no other process takes the lease during the transaction. Throws `stopped` as renewLease does. */
export async function requireLease(tx: Tx, { rotation, fence }: Lease): Promise<void> {
  const { rows } = await sql`
    select name from usage_export.rotation where name = ${rotation} and fence = ${fence}::bigint for update
  `.execute(tx);
  if (rows.length === 0) throw leaseLost(rotation);
}

function leaseLost(rotation: string): AppError {
  return new AppError("stopped", `another process has taken over the rotation ${rotation}`);
}
