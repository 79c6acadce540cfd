// The lease of a rotation lets one process at a time rotate a key. It is stored in the rotation's row, with a fencing number that only
// grows: a process that slept through its lease holds an old number and can't write with it. A session lock would not do: a pooler would
// hand the session to other clients.

import { sql } from "kysely";
import type { RotationConfig } from "../../config/rotations.ts";
import { AppError } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";

const NOW = sql<Date>`clock_timestamp()`;

/** The holder renews its lease three times within this time. After a crash of the holder another process waits this long. */
export const LEASE_SECONDS = 10;
const LEASE_END = sql<Date>`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`;

export type Lease = { readonly rotation: string; readonly fence: string };

type Leased = Pick<RotationConfig, "name" | "jobName"> & { readonly project?: { readonly name: string } };

/** Returns those of the names whose rotation has ever been begun, by any process. */
export async function begunRotations(tx: Tx, names: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.selectFrom("usage_export.rotation").select("name").where("name", "in", names).execute();
  return new Set(rows.map(({ name }) => name));
}

/** Undefined while another process holds the lease. */
export async function takeLease(db: Database, { name, jobName, project }: Leased, owner: string) {
  return inTransaction(db, async (tx): Promise<Lease | undefined> => {
    await sql`insert into usage_export.rotation (name) values (${name}) on conflict do nothing`.execute(tx);
    // An end beyond LEASE_END was stored before the clock was set back: it is shortened, and its holder may still renew it.
    await tx
      .updateTable("usage_export.rotation")
      .set({ lease_until: LEASE_END })
      .where("name", "=", name)
      .where("lease_until", ">", sql<Date>`${LEASE_END} + interval '1 second'`)
      .execute();
    const taken = await tx
      .updateTable("usage_export.rotation")
      .set({ lease_owner: owner, lease_until: LEASE_END, fence: sql`fence + 1` })
      .set({ job_name: jobName ?? null, project: project?.name ?? null })
      .where("name", "=", name)
      .where((where) => where.or([where("lease_until", "is", null), where("lease_until", "<", NOW)]))
      .returning("fence")
      .executeTakeFirst();
    return taken && { rotation: name, fence: String(taken.fence) };
  });
}

/** Throws `stopped` if the lease was released, or expired and was taken by another process. */
export async function renewLease(db: Database, lease: Lease): Promise<void> {
  const { numUpdatedRows } = await inTransaction(db, (tx) => {
    const renewal = updateLeased(tx, lease).set({ lease_until: LEASE_END });
    return renewal.where("lease_owner", "is not", null).executeTakeFirst();
  });
  if (numUpdatedRows === 0n) throw leaseLost(lease);
}

/** Does nothing if another process has the lease by now. */
export async function releaseLease(db: Database, lease: Lease): Promise<void> {
  await inTransaction(db, (tx) => updateLeased(tx, lease).set({ lease_until: null, lease_owner: null }).execute());
}

function updateLeased(tx: Tx, { rotation, fence }: Lease) {
  return tx.updateTable("usage_export.rotation").where("name", "=", rotation).where("fence", "=", fence);
}

/**
 * Locks the rotation's row, so that no other process takes the lease during the transaction. Throws `stopped` if another process
 * has taken it already.
 */
export async function requireLease(tx: Tx, lease: Lease): Promise<void> {
  const held = await tx
    .selectFrom("usage_export.rotation")
    .select("name")
    .where("name", "=", lease.rotation)
    .where("fence", "=", lease.fence)
    .forUpdate()
    .executeTakeFirst();
  if (!held) throw leaseLost(lease);
}

function leaseLost({ rotation }: Lease): AppError {
  return new AppError("stopped", `another process has taken over the rotation ${rotation}`);
}
