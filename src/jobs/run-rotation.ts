// Runs a rotation job once, under a lease, and records the run. Wires the rotation's steps to service, ledger and sinks.

import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { databaseNow } from "../db/connection/database.ts";
import { finishRun, heartbeatRun, startRun } from "../db/jobs/runs.ts";
import { sealedKey } from "../db/keys/keystore.ts";
import { LEASE_SECONDS, type Lease, releaseLease, renewLease, takeLease } from "../db/keys/lease.ts";
import { readLedger, writeLedger } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import type { LedgerChange, LedgerKey } from "../keys/ledger.ts";
import type { RotationRequest } from "../keys/plan.ts";
import { makesSelfHosted, type RotationJob } from "../keys/policy.ts";
import { type RotationResult, rotateKey } from "../keys/rotate.ts";
import type { LastUse, RotationDeps } from "../keys/rotation-deps.ts";
import { openSealedKey, sealKey } from "../keys/seal.ts";
import { deliverKey, staleFiles, testSink } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";
import { createKey, deleteKey, fetchToken, listKeys } from "../service/keys.ts";
import { DAY_SECONDS, dayOf } from "../usage/days.ts";
import { NO_COUNTS, type RunTrigger } from "../usage/export.ts";
import type { RotationContext } from "./export-context.ts";
import { lastUse, refusalReason, verifyKey } from "./verify-key.ts";

export type RotationOptions = {
  readonly now?: boolean;
  readonly rollback?: boolean;
  /** The run it belongs to, where there is one already. */
  readonly runId?: string;
};

const RENEW_MS = (LEASE_SECONDS * 1000) / 3;
/** A lease and a little: after a crash its holder's lease has run out by then. */
const LEASE_WAIT_MS_MAX = LEASE_SECONDS * 2_000;
const LEASE_POLL_MS = 250;

/** Rotates one key now, if it is due or `asked` says so. Waits for another process that does. */
export async function runRotationJob(
  context: RotationContext,
  job: RotationJob,
  trigger: RunTrigger,
  asked: RotationOptions,
): Promise<RotationResult> {
  const { app, db } = context;
  // Before the wait: what another process has done in the meantime fulfils the wish.
  const wish = rotationRequest(asked, await databaseNow(db));
  const lease = await waitForLease(context, job);
  const runId = asked.runId ?? randomUUID();
  const renewing = setInterval(() => void renewLeaseAndHeartbeat(context, lease, runId), RENEW_MS);
  try {
    await startRun(db, { runId, kind: "rotation", job: job.name, trigger });
    const result = await rotateKey(job, rotationDeps(context, job, lease), wish, app.signal);
    const error = result.errors[0];
    await finishRun(db, runId, result.status, NO_COUNTS, error && app.scrubber.scrub(error));
    app.log.info({ rotation: job.name, runId, did: result.did, status: result.status }, "rotation finished");
    return result;
  } catch (error) {
    const status = app.signal.aborted ? "stopped" : "failed";
    await finishRun(db, runId, status, NO_COUNTS, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(renewing);
    await releaseLease(db, lease).catch(() => {});
  }
}

export function rotationRequest({ now, rollback }: RotationOptions, at: Date): RotationRequest {
  return { ...(now && { freshSince: at }), ...(rollback && { previousSince: at }) };
}

/** A lease that was lost is noticed by the next write, and a database that is away too. */
async function renewLeaseAndHeartbeat({ db }: RotationContext, lease: Lease, runId: string): Promise<void> {
  await Promise.allSettled([renewLease(db, lease), heartbeatRun(db, runId)]);
}

async function waitForLease({ app, db }: RotationContext, job: RotationJob): Promise<Lease> {
  const until = performance.now() + LEASE_WAIT_MS_MAX;
  for (let looks = 0; ; looks++) {
    const lease = await takeLease(db, job.name, app.actor);
    if (lease) return lease;
    if (looks === 0) app.log.info({ rotation: job.name }, "waiting for another process that rotates");
    if (performance.now() > until) {
      throw new AppError(
        "stopped",
        `another process is rotating ${job.name}; it has not finished in ${LEASE_WAIT_MS_MAX / 1000} s`,
      );
    }
    await sleep(LEASE_POLL_MS, undefined, { signal: app.signal });
  }
}

// Wires the steps of a rotation to the service, the ledger and the sinks.

/** How long a key that was made is held while the database does not take it: after that it is lost. */
const STORE_RETRY_MS_MAX = 60_000;
const STORE_RETRY_WAIT_MS = 1_000;

function rotationDeps(context: RotationContext, job: RotationJob, lease: Lease): RotationDeps {
  const { app, db, service, keys } = context;
  const { project } = job;
  const log = app.log.child({ rotation: job.name });
  /** By intent: usage of a key that is released and deleted in one run is looked up once. */
  const seen = new Map<string, LastUse>();
  return {
    log,
    readLedger: () => readLedger(db, job),
    writeLedger: async (change, reason) => {
      await writeChange(context, job, lease, change, app.scrubber.scrub(reason));
      const intentId = "intentId" in change ? change.intentId : undefined;
      log.info({ change: change.kind, intentId, reason }, "key ledger changed");
    },
    newIntentId: () => `ue-${randomBytes(6).toString("hex")}`,
    confirmLease: () => renewLease(db, lease),
    testSink,
    deliver: (sink, key, apiKeyId) => deliverKey(sink, key, apiKeyId, (text) => app.scrubber.scrub(text)),
    inspect: async (key, signal) => {
      const { key: secret } = await openStoredKey(context, key.intentId);
      const tried = { key: secret, granted: key.scopesGranted, today: dayOf(await databaseNow(db)) };
      return {
        intentId: key.intentId,
        refusal: await refusalReason(service, job, tried, log, signal),
        stale: await staleFiles(job.deliver, key, secret),
      };
    },
    findCaller: (signal) =>
      keys.useToRotate(job, async (key) => {
        await fetchToken(service, key, signal);
        return key;
      }),
    create: (comment, caller, signal) => createAtService(context, job, comment, caller, signal),
    openKey: (intentId) => openStoredKey(context, intentId),
    verify: async (key, apiKeyId, granted, signal) => {
      const today = dayOf(await databaseNow(db));
      await verifyKey(service, job, { key, apiKeyId, granted, today }, signal);
    },
    list: (signal) => keys.useToRotate(job, (key) => listKeys(service, project.id, key, signal)),
    callerIds: async (signal) => {
      const fetch = (key: Secret) => fetchToken(service, key, signal);
      const tokens = [await keys.useToRotate(job, fetch), await keys.use(project, fetch)];
      return tokens.flatMap((token) => token?.apiKeyId ?? []);
    },
    remove: (apiKeyId, signal) => keys.useToRotate(job, (key) => deleteKey(service, project.id, apiKeyId, key, signal)),
    lastUse: async (key, signal) => {
      const known = seen.get(key.intentId) ?? (await look(key, signal));
      seen.set(key.intentId, known);
      return known;
    },
    clocks: async (signal) => {
      // If there was no answer yet, the service's time is not known, so one harmless call asks for it.
      if (!service.serviceTime()) await keys.useToRotate(job, (key) => fetchToken(service, key, signal));
      return { database: await databaseNow(db), machine: new Date(), service: service.serviceTime() };
    },
  };

  async function look(key: LedgerKey, signal: AbortSignal): Promise<LastUse> {
    return lastUse({ service, keys, job, key, today: dayOf(await databaseNow(db)), signal });
  }
}

async function createAtService(
  { app, service }: RotationContext,
  job: RotationJob,
  comment: string,
  caller: Secret,
  signal: AbortSignal,
) {
  const { scopes, expiresInDays } = job;
  const tags = makesSelfHosted(scopes) ? [] : job.tags;
  const expiresInSeconds = expiresInDays === undefined ? undefined : expiresInDays * DAY_SECONDS;
  const request = { comment, scopes, tags, expiresInSeconds };
  const created = await createKey(service, job.project.id, request, caller, signal);
  app.scrubber.add(created.key);
  return created;
}

async function openStoredKey({ app, db, masterKeys }: RotationContext, intentId: string) {
  const kept = await sealedKey(db, intentId);
  if (!kept) throw new AppError("database", `the ledger has no secret for ${intentId}`);
  const { apiKeyId, sealed } = kept;
  return { apiKeyId, key: app.scrubber.add(await openSealedKey(sealed, apiKeyId, masterKeys)) };
}

async function writeChange(
  { app, db, masterKeys }: RotationContext,
  job: RotationJob,
  lease: Lease,
  change: LedgerChange,
  reason: string,
): Promise<void> {
  const base = { job, lease, actor: app.actor, changeId: randomUUID() };
  if (change.kind !== "stored") return writeLedger(db, base, change, reason);

  const { key, apiKeyId } = change.created;
  const sealed = { text: await sealKey(key, apiKeyId, masterKeys), masterKey: masterKeys.current.id };
  const until = performance.now() + STORE_RETRY_MS_MAX;
  for (;;) {
    try {
      return await writeLedger(db, { ...base, sealed }, change, reason);
    } catch (error) {
      // The secret is shown once and is nowhere else: a database that is away for a moment must not cost it.
      if (error instanceof AppError || performance.now() > until) throw error;
      app.log.error({ rotation: job.name, apiKeyId, reason: errorText(error) }, "new key not stored yet");
      await sleep(STORE_RETRY_WAIT_MS);
    }
  }
}
