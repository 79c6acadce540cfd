// The lease of a rotation: one process has it at a time, and writes to the ledger only while nobody else has taken it.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { LEASE_SECONDS, releaseLease, renewLease, requireLease, takeLease } from "../../../src/db/keys/lease.ts";
import type { LedgerChange } from "../../../src/db/keys/ledger.ts";
import { testDatabase } from "../../support/database.ts";
import { newIntent, newKey, newRotation, writer } from "./written-ledger.ts";

const { db, url, read, waitingForLock } = await testDatabase();

const secondsSince = (ms: number) => (performance.now() - ms) / 1000;
const newName = () => `rotation-${randomUUID()}`;

async function leaseOf(rotation: string) {
  const [lease] = await read(sql<{ left: number | null; fence: string }>`
    select extract(epoch from lease_until - clock_timestamp())::float as left, fence
    from usage_export.rotation where name = ${rotation}
  `);
  return lease;
}

/** Ends the lease now, as if nobody had renewed it. */
async function expireLease(rotation: string): Promise<void> {
  await sql`update usage_export.rotation set lease_until = clock_timestamp() where name = ${rotation}`.execute(db);
}

const take = (rotation: string) => takeLease(db, { name: rotation });

async function takenLease(rotation = newName()) {
  const lease = await take(rotation);
  if (!lease) throw new Error(`the lease of ${rotation} is taken`);
  return lease;
}

test("a taken lease can't be taken again", async () => {
  const rotation = newName();
  const sinceMs = performance.now();
  await takenLease(rotation);
  expect(await take(rotation)).toBeUndefined();
  const row = await leaseOf(rotation);
  expect(row).toMatchObject({ fence: "1" });
  expect(row?.left).toBeGreaterThanOrEqual(LEASE_SECONDS - secondsSince(sinceMs));
  expect(row?.left).toBeLessThanOrEqual(LEASE_SECONDS);
});

test("of many processes that take a lease at the same moment one gets it", async () => {
  await using stack = new AsyncDisposableStack();
  const pools = Array.from({ length: 5 }, () => stack.use(openPostgres(url)));
  for (let round = 0; round < 10; round++) {
    const rotation = newName();
    const takers = [...pools, ...pools].map((pool) => takeLease(pool, { name: rotation }));
    const leases = await Promise.all(takers);
    expect(leases.filter((lease) => lease !== undefined)).toEqual([{ rotation, fence: "1" }]);
  }
});

test("the old owner of a lease that was taken over can neither renew nor release it", async () => {
  const old = await takenLease();
  const { rotation } = old;
  await expireLease(rotation);
  expect(await takenLease(rotation)).toEqual({ rotation, fence: "2" });
  await expect(renewLease(db, old)).rejects.toMatchObject({
    code: "stopped",
    message: `another process has taken over the rotation ${rotation}`,
  });
  await releaseLease(db, old);
  expect(await leaseOf(rotation)).toMatchObject({ fence: "2", left: expect.any(Number) });
  expect(await take(rotation)).toBeUndefined();
});

test("after the clock was set back by a day, a lease from before expires like any other unless it is renewed", async () => {
  const [dead, alive] = [newName(), newName()];
  await takenLease(dead);
  const lease = await takenLease(alive);
  await read(
    sql`update usage_export.rotation set lease_until = lease_until + interval '1 day' where name in (${dead}, ${alive})`,
  );
  for (const rotation of [dead, alive]) {
    expect(await take(rotation)).toBeUndefined();
    expect((await leaseOf(rotation))?.left).toBeLessThanOrEqual(LEASE_SECONDS);
  }
  await renewLease(db, lease);
  await expireLease(dead);
  expect(await takenLease(dead)).toMatchObject({ fence: "2" });
  expect(await take(alive)).toBeUndefined();
});

test("a lease that nobody else took can be renewed until its release, even after it has expired", async () => {
  const lease = await takenLease();
  const { rotation } = lease;
  await expireLease(rotation);
  const sinceMs = performance.now();
  await renewLease(db, lease);
  expect((await leaseOf(rotation))?.left).toBeGreaterThanOrEqual(LEASE_SECONDS - secondsSince(sinceMs));
  expect(await take(rotation)).toBeUndefined();
  await releaseLease(db, lease);
  await expect(renewLease(db, lease)).rejects.toMatchObject({ code: "stopped" });
  await expect(takenLease(rotation)).resolves.toMatchObject({ fence: "2" });
});

test("nobody takes a lease while its owner writes, even after it has expired", async () => {
  const lease = await takenLease();
  const { rotation } = lease;
  await expireLease(rotation);
  const order: string[] = [];
  const writing = db.transaction().execute(async (tx) => {
    await requireLease(tx, lease);
    const taking = take(rotation).then(() => order.push("taken"));
    await expect.poll(waitingForLock).toHaveLength(1);
    order.push("written");
    return { taking };
  });
  await (await writing).taking;
  expect(order).toEqual(["written", "taken"]);
});

const intentId = newIntent();
const CHANGES: readonly LedgerChange[] = [
  { kind: "intent", intentId: newIntent(), comment: "usage exporter" },
  { kind: "stored", intentId, newKey: newKey(intentId) },
  { kind: "delivered", intentId, sink: "file /run/exporter.key" },
  { kind: "active", intentId, isRollback: false },
  { kind: "failed" },
];
const zombie = await newRotation(db);
await zombie.write({ kind: "intent", intentId, comment: "usage exporter" });
await expireLease(zombie.job.name);
const heir = writer(db, zombie.job, await takenLease(zombie.job.name));
await heir.write({ kind: "failed" });

test.each(CHANGES)("a process that slept through its lease does not write $kind", async (change) => {
  const before = await everything(zombie.job.name);
  await expect(zombie.write(change)).rejects.toMatchObject({ code: "stopped" });
  expect(await everything(zombie.job.name)).toEqual(before);
});

const everything = (rotation: string) =>
  read(sql`
    select (select jsonb_agg(r) from usage_export.rotation r where name = ${rotation}) as rotation,
      (select jsonb_agg(k order by intent_id) from usage_export.api_key k where rotation = ${rotation}) as keys,
      (select jsonb_agg(d) from usage_export.key_delivery d where rotation = ${rotation}) as deliveries,
      (select jsonb_agg(e order by event_id) from usage_export.key_event e where rotation = ${rotation}) as events
  `);
