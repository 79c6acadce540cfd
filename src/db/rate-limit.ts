// The leases by which the processes on this database share a service's rate limit, and the pause the service asked for. Leases are
// renewed and released by single statements outside any transaction, so that a process that stops in between blocks no other.

import { type RawBuilder, sql } from "kysely";
import type { AllocatedSlots, Demand, KeyPauses, LeasedShare } from "../rate-share.ts";
import type { Database } from "./connection/database.ts";
import { inTransaction, withRetries } from "./connection/transaction.ts";

export type ServiceLimit = {
  readonly service: string;
  readonly requestsPerSecond: number;
  readonly maxConcurrent: number;
};

/** The times are those of the database's clock, in milliseconds since 1970. */
type Lease = { readonly slots: number; readonly wanted: number; readonly untilMs: number };
export type Leases = Readonly<Record<string, Lease>>;

/** A lease that is not renewed ends after this time. */
const LEASE_MS = 10_000;
/** How long the same processes keep the slots that can't be divided evenly. */
const ROTATION_MS = 10_000;

/**
 * Renews the lease of a process, or gives it one. All leases are stored as one value, which is replaced only if it has not changed
 * since it was read. So the slots of live leases never exceed the cap.
 */
export async function renewLease(db: Database, limit: ServiceLimit, id: string, demand: Demand): Promise<LeasedShare> {
  const { service, requestsPerSecond, maxConcurrent } = limit;
  for (;;) {
    const { leases, nowMs, pauseMs, keyPauses, ...stored } = await readLimit(db, service);
    const known: Leases = JSON.parse(leases);
    const { next, ...allocated } = allocate(known, id, demand, maxConcurrent, nowMs);
    const expiredStartMs = startAfterExpired(known, id, limit, nowMs);
    const startMs = Math.max(stored.startMs, expiredStartMs);
    const { rows } = await withRetries(() =>
      sql`
        update usage_export.rate_limit
        set leases = ${JSON.stringify(next)}::jsonb, next_start_at = ${nextStartAt(Math.max(demand.nextStartMs ?? 0, expiredStartMs))}
        where service = ${service} and leases = ${leases}::jsonb returning 1
      `.execute(db),
    );
    if (rows.length === 0) continue;
    // If the clock was set back, the stored start may be far away: the wait is at most the time between two calls with a single slot.
    const startMsMax = (1000 * maxConcurrent) / requestsPerSecond;
    return { ...allocated, lifeMs: LEASE_MS, startMs: Math.min(startMs, startMsMax), pauseMs, keyPauses };
  }
}

type StoredLimit = {
  readonly leases: string;
  readonly nowMs: number;
  readonly startMs: number;
  readonly pauseMs: number;
  readonly keyPauses: KeyPauses;
};

async function readLimit(db: Database, service: string): Promise<StoredLimit> {
  const keys = limitOfKey(service, "");
  const read = () =>
    sql<StoredLimit>`
      select leases::text,
        extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs",
        ${msUntil(sql.ref("next_start_at"))} as "startMs",
        ${PAUSE_MS} as "pauseMs",
        (
          select coalesce(jsonb_object_agg(substr(service, length(${keys}) + 1), ${PAUSE_MS}), '{}')
          from usage_export.rate_limit where starts_with(service, ${keys}) and paused_until > clock_timestamp()
        ) as "keyPauses"
      from usage_export.rate_limit where service = ${service}
    `.execute(db);
  for (;;) {
    const { rows } = await withRetries(read);
    if (rows[0]) return rows[0];
    await withRetries(() =>
      sql`insert into usage_export.rate_limit (service) values (${service}) on conflict do nothing`.execute(db),
    );
  }
}

/**
 * Decides what a process gets. It keeps the slots it can't give back now, and gets what is free: all of it, or up to its fair share
 * if another process has less than its own fair share. A process that holds more than its share then gives the rest back: it
 * uses no more than `usableSlots`, and keeps no more at its next renewal.
 */
export function allocate(
  stored: Leases,
  id: string,
  { kept, wanted }: Demand,
  cap: number,
  nowMs: number,
): AllocatedSlots & { readonly next: Leases } {
  const live = Object.entries(stored)
    .filter(([, { untilMs }]) => untilMs > nowMs)
    // A lease that ends more than LEASE_MS from now was stored before the clock was set back.
    .map(([other, lease]) => [other, { ...lease, untilMs: Math.min(lease.untilMs, nowMs + LEASE_MS) }] as const);
  const others = live.filter(([other]) => other !== id);
  const held = Math.min(kept, live.find(([other]) => other === id)?.[1].slots ?? 0);
  const free = others.reduce((left, [, { slots }]) => left - slots, cap - held);
  const fair = fairShares([...others, [id, { wanted }]], cap, Math.floor(nowMs / ROTATION_MS));
  const isContested = others.some(([other, { slots, wanted }]) => slots < Math.min(wanted, fair.get(other) ?? 0));
  const fairSlots = fair.get(id) ?? 0;
  const slots = held + Math.max(Math.min(free, isContested ? fairSlots - held : free), 0);
  const next = Object.fromEntries([...others, [id, { slots, wanted, untilMs: nowMs + LEASE_MS }]]);
  return { slots, usableSlots: isContested ? Math.min(slots, fairSlots) : slots, fairSlots, next };
}

/**
 * Milliseconds until the next call may start on the slots of processes that ended without giving them back. Such a process may have
 * started a call until its lease expired. With less than a call in ten seconds, the rate forbids another one for longer than that.
 */
function startAfterExpired(stored: Leases, id: string, limit: ServiceLimit, nowMs: number): number {
  const starts = Object.entries(stored)
    .filter(([other, { slots, untilMs }]) => other !== id && slots > 0 && untilMs <= nowMs)
    .map(([, { slots, untilMs }]) => untilMs + (1000 * limit.maxConcurrent) / (limit.requestsPerSecond * slots));
  return Math.max(0, ...starts.map((startMs) => startMs - nowMs));
}

/**
 * Divides the cap: no process gets more than it wants while another wants more; what is left after that is divided too. Slots that
 * can't be divided evenly go to other processes in each rotation: with n processes for each slot, each process has a slot in one of n
 * rotations.
 */
function fairShares(
  claims: readonly (readonly [id: string, claim: { readonly wanted: number }])[],
  cap: number,
  rotation: number,
): ReadonlyMap<string, number> {
  const sorted = claims.toSorted(([a], [b]) => (a < b ? -1 : 1));
  const first = rotation % sorted.length;
  const order = [...sorted.slice(first), ...sorted.slice(0, first)];
  const shares = new Map(order.map(([id]) => [id, 0]));
  let left = cap;
  for (const limitOf of [({ wanted }: { wanted: number }) => Math.min(wanted, cap), () => cap]) {
    for (;;) {
      const open = order.filter(([id, claim]) => (shares.get(id) ?? 0) < limitOf(claim));
      if (open.length === 0 || left === 0) break;
      const each = Math.max(Math.floor(left / open.length), 1);
      for (const [id, claim] of open) {
        const share = shares.get(id) ?? 0;
        const more = Math.min(each, limitOf(claim) - share, left);
        shares.set(id, share + more);
        left -= more;
      }
    }
  }
  return shares;
}

/** Gives all slots back. By the rate, another process may start a call on them in `nextStartMs` milliseconds. */
export async function releaseLease(db: Database, service: string, id: string, nextStartMs: number): Promise<void> {
  await sql`
    update usage_export.rate_limit
    set leases = leases - ${id}::text,
      next_start_at = ${nextStartAt(nextStartMs)}
    where service = ${service}
  `.execute(db);
}

/** What is left of a pause, in milliseconds. If more is left than it was long, the clock was set back. */
const PAUSE_MS = sql`least(${msUntil(sql.ref("paused_until"))}, extract(epoch from pause)::float8 * 1000)`;

/** The name under which the limits of a key are stored, beside those of the whole service. */
export function limitOfKey(service: string, key: string): string {
  return `${service} key ${key}`;
}

/** 0 for a moment that is over. Postgres before 17 refuses to subtract from -infinity. */
function msUntil(moment: RawBuilder<unknown>) {
  return sql`greatest(extract(epoch from greatest(${moment}, clock_timestamp()) - clock_timestamp())::float8 * 1000, 0)`;
}

function nextStartAt(ms: number) {
  return sql`greatest(next_start_at, clock_timestamp() + make_interval(secs => ${ms / 1000}))`;
}

/** Upper limit of a pause, whatever the caller passes. */
const PAUSE_SECONDS_MAX = 60 * 60;

/** No process starts a call in the next `ms`. A shorter pause does not end a longer one. */
export async function pauseCalls(db: Database, service: string, ms: number): Promise<void> {
  const seconds = Math.min(ms / 1000, PAUSE_SECONDS_MAX);
  await withRetries(() =>
    sql`
      insert into usage_export.rate_limit as stored (service, paused_until, pause)
      values (${service}, clock_timestamp() + make_interval(secs => ${seconds}), make_interval(secs => ${seconds}))
      on conflict (service) do update set paused_until = excluded.paused_until, pause = excluded.pause
      where stored.paused_until < excluded.paused_until
    `.execute(db),
  );
}

/** When the pause that the service asked for ends; undefined if calls are not paused. */
export async function pausedUntil(db: Database, service: string): Promise<Date | undefined> {
  const { rows } = await sql<{ until: Date }>`
    select least(paused_until, clock_timestamp() + pause) as until from usage_export.rate_limit
    where service = ${service} and paused_until > clock_timestamp()
  `.execute(db);
  return rows[0]?.until;
}

export type PausedKey = { readonly key: string; readonly until: Date };

/** The keys with which the service asked for a pause that lasts. */
export async function pausedKeys(db: Database, service: string): Promise<readonly PausedKey[]> {
  const keys = limitOfKey(service, "");
  const { rows } = await sql<PausedKey>`
    select substr(service, length(${keys}) + 1) as key, least(paused_until, clock_timestamp() + pause) as until
    from usage_export.rate_limit where starts_with(service, ${keys}) and paused_until > clock_timestamp()
    order by service
  `.execute(db);
  return rows;
}

/** Ends the pauses of all calls and of single keys; waiting processes notice within seconds. Returns when the last of them would have ended. */
export async function resumeCalls(db: Database, service: string): Promise<Date | undefined> {
  return inTransaction(db, async (tx) => {
    const ofAll = await pausedUntil(tx, service);
    const ofKeys = (await pausedKeys(tx, service)).map(({ until }) => until);
    await sql`
      update usage_export.rate_limit set paused_until = '-infinity', pause = '0'
      where paused_until > '-infinity' and (service = ${service} or starts_with(service, ${limitOfKey(service, "")}))
    `.execute(tx);
    const ends = [...(ofAll ? [ofAll] : []), ...ofKeys].sort((a, b) => a.getTime() - b.getTime());
    return ends.at(-1);
  });
}
