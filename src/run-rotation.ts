// Wires one run of a rotation job: the steps of keys/ to the service, the ledger and the sinks, under a lease.

import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fetchBreakdown } from "./api/breakdown.ts";
import type { Service } from "./api/http.ts";
import { createKey, deleteKey, fetchToken, listKeys } from "./api/keys.ts";
import type { App } from "./app.ts";
import { type Database, databaseNow } from "./db/database.ts";
import { readLedger, requestRollback, writeLedger } from "./db/key-ledger.ts";
import { sealedKey } from "./db/keystore.ts";
import { LEASE_SECONDS, type Lease, releaseLease, renewLease, takeLease } from "./db/lease.ts";
import { finishRun, startRun } from "./db/runs.ts";
import { AppError, errorText } from "./errors.ts";
import { deliverKey, testSink } from "./keys/deliver.ts";
import type { Wish } from "./keys/plan.ts";
import type { RotationJob } from "./keys/policy.ts";
import { type LedgerChange, type RotationDeps, type RotationResult, rotateKey } from "./keys/rotate.ts";
import { holdsScope } from "./keys/scopes.ts";
import { type MasterKeys, openSealedKey, sealKey } from "./keys/seal.ts";
import type { KeyRing } from "./keys-in-use.ts";
import { seenInUse } from "./keys-seen.ts";
import type { Secret } from "./secret.ts";
import { addDays, dayOf } from "./usage/day.ts";
import { NOTHING_DONE, type RunTrigger } from "./usage/export.ts";

export type RotationContext = {
  readonly app: App;
  readonly db: Database;
  readonly service: Service;
  readonly keys: KeyRing;
  readonly masterKeys: MasterKeys;
};

export type RotationWish = { readonly now?: boolean; readonly rollback?: boolean };

const RENEW_MS = (LEASE_SECONDS * 1000) / 3;
/** A lease and a little: after a crash its holder's lease has run out by then. */
const LEASE_WAIT_MS_MAX = LEASE_SECONDS * 2_000;
const LEASE_LOOK_MS = 250;
/** How long a key that was made is held while the database does not take it: after that it is lost. */
const STORE_MS_MAX = 60_000;

/** Rotates one key now, if it is due or `wish` says so, and records the run. Waits for another process that does. */
export async function runRotationJob(
  context: RotationContext,
  job: RotationJob,
  trigger: RunTrigger,
  wish: RotationWish,
): Promise<RotationResult> {
  const { app, db } = context;
  // Before the wait: what another process has made in the meantime fulfils the wish.
  const freshSince = wish.now ? await databaseNow(db) : undefined;
  const lease = await waitForLease(context, job);
  const renewing = setInterval(() => renewLease(db, lease).catch(() => {}), RENEW_MS);
  const runId = randomUUID();
  try {
    await startRun(db, { runId, kind: "rotation", job: job.name, trigger });
    if (wish.rollback) await rollback(context, job, lease);
    const deps = rotationDeps(context, job, lease);
    const result = await rotateKey(job, deps, freshSince ? ({ freshSince } satisfies Wish) : {}, app.signal);
    const error = result.errors[0] ?? (result.needsAttention ? result.idle : undefined);
    await finishRun(db, runId, result.status, NOTHING_DONE, error);
    app.log.info({ rotation: job.name, runId, did: result.did, status: result.status }, "rotation finished");
    return result;
  } catch (error) {
    const status = app.signal.aborted ? "stopped" : "failed";
    await finishRun(db, runId, status, NOTHING_DONE, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(renewing);
    await releaseLease(db, lease).catch(() => {});
  }
}

async function waitForLease({ app, db }: RotationContext, job: RotationJob): Promise<Lease> {
  const until = performance.now() + LEASE_WAIT_MS_MAX;
  for (;;) {
    const lease = await takeLease(db, job.name, app.actor);
    if (lease) return lease;
    if (performance.now() > until) {
      throw new AppError(
        "stopped",
        `another process is rotating ${job.name}; it has not finished in ${LEASE_WAIT_MS_MAX / 1000} s`,
      );
    }
    await sleep(LEASE_LOOK_MS, undefined, { signal: app.signal });
  }
}

async function rollback({ app, db }: RotationContext, job: RotationJob, lease: Lease): Promise<void> {
  const wanted = await requestRollback(db, job.name, lease, app.actor);
  if (wanted === undefined) {
    throw new AppError("rejected", `the rotation ${job.name} has no previous key to put back`);
  }
}

function rotationDeps(context: RotationContext, job: RotationJob, lease: Lease): RotationDeps {
  const { app, db, service, keys, masterKeys } = context;
  const projectId = job.project.id;
  return {
    readLedger: () => readLedger(db, job.name),
    writeLedger: (change, reason) => write(context, job, lease, change, app.scrubber.scrub(reason)),
    now: () => databaseNow(db),
    newIntentId: () => `ue-${randomBytes(6).toString("hex")}`,
    confirmLease: () => renewLease(db, lease),
    testSink,
    deliver: deliverKey,
    create: async (comment, signal) => {
      // A call that may be repeated finds the key that works; the create itself is sent once.
      const caller = await keys.use(job.project, async (key) => {
        await fetchToken(service, key, signal);
        return key;
      });
      const { scopes, tags, expiresInDays } = job;
      const expiresInSeconds = expiresInDays === undefined ? undefined : expiresInDays * 24 * 60 * 60;
      const created = await createKey(service, projectId, { comment, scopes, tags, expiresInSeconds }, caller, signal);
      app.scrubber.add(created.key);
      return created;
    },
    openKey: async (intentId) => {
      const kept = await sealedKey(db, intentId);
      if (!kept) throw new AppError("database", `the ledger has no secret for ${intentId}`);
      const { apiKeyId, sealed } = kept;
      return { apiKeyId, key: app.scrubber.add(await openSealedKey(sealed, apiKeyId, masterKeys)) };
    },
    verify: (key, apiKeyId, granted, signal) => verifyKey(service, job, { key, apiKeyId, granted }, signal),
    list: (signal) => keys.use(job.project, (key) => listKeys(service, projectId, key, signal)),
    callerId: (signal) => keys.use(job.project, async (key) => (await fetchToken(service, key, signal))?.apiKeyId),
    remove: (apiKeyId, signal) => keys.use(job.project, (key) => deleteKey(service, projectId, apiKeyId, key, signal)),
    seenInUse: async (key, signal) =>
      seenInUse({ service, keys, job, key, today: dayOf(await databaseNow(db)), signal }),
    log: app.log.child({ rotation: job.name }),
  };
}

async function write(
  { app, db, masterKeys }: RotationContext,
  job: RotationJob,
  lease: Lease,
  change: LedgerChange,
  reason: string,
): Promise<void> {
  const base = { job, lease, actor: app.actor };
  if (change.kind !== "stored") return writeLedger(db, base, change, reason);

  const { key, apiKeyId } = change.created;
  const sealed = { text: await sealKey(key, apiKeyId, masterKeys), masterKey: masterKeys.current.id };
  const until = performance.now() + STORE_MS_MAX;
  for (;;) {
    try {
      return await writeLedger(db, { ...base, sealed }, change, reason);
    } catch (error) {
      // The secret is shown once and is nowhere else: a database that is away for a moment must not cost it.
      if (error instanceof AppError || performance.now() > until) throw error;
      app.log.error({ rotation: job.name, apiKeyId, reason: errorText(error) }, "new key not stored yet");
      await sleep(1_000);
    }
  }
}

type NewlyMade = { readonly key: Secret; readonly apiKeyId: string; readonly granted: readonly string[] };

/** A key may need a moment until every part of the service knows it. */
const VERIFY_ATTEMPTS_MAX = 3;
const VERIFY_WAIT_MS = 1_000;

/** The most telling harmless call that the key's scopes allow. Throws where the service does not take the key. */
async function verifyKey(service: Service, job: RotationJob, made: NewlyMade, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await callWith(service, job, made, signal);
    } catch (error) {
      const unknownYet = error instanceof AppError && error.details.status === 401;
      if (!unknownYet || attempt >= VERIFY_ATTEMPTS_MAX) throw error;
      service.forgetRefusals();
      await sleep(VERIFY_WAIT_MS, undefined, { signal });
    }
  }
}

async function callWith(
  service: Service,
  job: RotationJob,
  { key, apiKeyId, granted }: NewlyMade,
  signal: AbortSignal,
): Promise<void> {
  const token = await fetchToken(service, key, signal);
  if (token && token.apiKeyId !== apiKeyId) {
    throw new AppError("bad_answer", `the service takes the new key ${apiKeyId} for ${token.apiKeyId}`);
  }
  const scopes = granted.length > 0 ? granted : (token?.scopes ?? job.scopes);
  if (holdsScope(scopes, "usage:read") || holdsScope(scopes, "project:read")) {
    const yesterday = addDays(dayOf(new Date()), -1);
    const series = {
      project: job.project,
      grouping: "none",
      filter: { name: "all", features: {}, dimensions: {} },
    } as const;
    await fetchBreakdown(service, { series, window: { start: yesterday, end: yesterday } }, key, signal);
  } else if (holdsScope(scopes, "keys:read")) {
    await listKeys(service, job.project.id, key, signal);
  }
}
