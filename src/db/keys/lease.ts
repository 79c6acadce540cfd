// The lease of a rotation lets one process at a time rotate a key. Its fencing number only grows, so a process that slept through its lease
// can't write. A session lock would not do, because a pooler hands the session to other clients.

import { sql } from "kysely";
import type { RotationConfig } from "../../config/rotations.ts";
import { AppError } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { execute, inTransaction, type Tx } from "../connection/transaction.ts";

/** The holder renews its lease three times within this time. If it crashes, other processes wait this long. */
export const LEASE_SECONDS = 10;
const LEASE_END = sql`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`;

export type Lease = { readonly rotation: string; readonly fence: string };

type Leased = Pick<RotationConfig, "name" | "jobName"> & { readonly project?: { readonly name: string } };

/** Returns those of the names whose rotation any process has ever begun. */
export async function begunRotations(tx: Tx, names: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.selectFrom("usage_export.rotation").select("name").where("name", "in", names).execute();
  return new Set(rows.map(({ name }) => name));
}

/** Returns undefined if another process holds the lease. */
export async function takeLease(db: Database, { name, jobName, project }: Leased) {
  return inTransaction(db, async (tx): Promise<Lease | undefined> => {
    await sql`insert into usage_export.rotation (name) values (${name}) on conflict do nothing`.execute(tx);
    // An end beyond LEASE_END was stored before the clock was set back. The lease is shortened, and its holder may still renew it.
    await sql`
      update usage_export.rotation set lease_until = ${LEASE_END}
      where name = ${name} and lease_until > ${LEASE_END} + interval '1 second'
    `.execute(tx);
    const { rows } = await sql<Lease>`
      update usage_export.rotation
      set lease_until = ${LEASE_END}, fence = fence + 1, job_name = ${jobName ?? null}, project = ${project?.name ?? null}
      where name = ${name} and (lease_until is null or lease_until < clock_timestamp())
      returning name as rotation, fence
    `.execute(tx);
    return rows[0];
  });
}

/** Throws `stopped` if the lease was released, or expired and was taken by another process. */
export async function renewLease(db: Database, lease: Lease): Promise<void> {
  const renew = sql`update usage_export.rotation set lease_until = ${LEASE_END} where ${holds(lease)} and lease_until is not null`;
  const { numAffectedRows } = await execute(db, renew);
  if (numAffectedRows === 0n) throw leaseLost(lease);
}

/** Does nothing if another process has taken the lease. */
export async function releaseLease(db: Database, lease: Lease): Promise<void> {
  await execute(db, sql`update usage_export.rotation set lease_until = null where ${holds(lease)}`);
}

/** Keeps other processes from taking the lease during the transaction. Throws `stopped` if one has taken it already. */
export async function requireLease(tx: Tx, lease: Lease): Promise<void> {
  const { rows } = await sql`select from usage_export.rotation where ${holds(lease)} for update`.execute(tx);
  if (rows.length === 0) throw leaseLost(lease);
}

/** No other process has taken the lease since. */
function holds({ rotation, fence }: Lease) {
  return sql`name = ${rotation} and fence = ${fence}`;
}

function leaseLost({ rotation }: Lease): AppError {
  return new AppError("stopped", `another process has taken over the rotation ${rotation}`);
}
