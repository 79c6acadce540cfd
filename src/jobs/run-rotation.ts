// Runs a rotation job once, under a lease, and records the run. Wires the rotation's steps to service, ledger and sinks.

import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { App } from "../app.ts";
import { memoizeAsync } from "../async.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { finishRun, heartbeatRun, startRun } from "../db/jobs/runs.ts";
import { LEASE_SECONDS, type Lease, releaseLease, renewLease, takeLease } from "../db/keys/lease.ts";
import { openKeyLedger } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import type { RotationRequest } from "../keys/plan.ts";
import { makesSelfHosted, type RotationJob } from "../keys/policy.ts";
import { type RotationResult, rotateKey } from "../keys/rotate.ts";
import type { LastUse, RotationDeps } from "../keys/rotation-deps.ts";
import { isDamaged } from "../keys/seal.ts";
import { deliverKey, staleFiles, testSink } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";
import { createKey, deleteKey, fetchToken, listKeys } from "../service/keys.ts";
import { DAY_SECONDS } from "../usage/days.ts";
import type { RunTrigger } from "../usage/export.ts";
import type { RotationContext } from "./export-context.ts";
import { lastUse } from "./key-last-use.ts";
import { refusalReason, verifyKey } from "./verify-key.ts";

export type RotationOptions = {
  readonly now?: boolean | undefined;
  readonly rollback?: boolean | undefined;
  /** The queued run that this rotation belongs to, if there is one. */
  readonly runId?: string;
};

const RENEW_MS = (LEASE_SECONDS * 1000) / 3;
/** Twice a lease: after a crash the lease of the crashed process has expired by then. */
const LEASE_WAIT_MS_MAX = LEASE_SECONDS * 2_000;
const LEASE_POLL_MS = 250;

/** Rotates one key now, if it is due or the options ask for it. If another process is rotating the key, waits until it has finished. */
export async function runRotationJob(
  context: RotationContext,
  job: RotationJob,
  trigger: RunTrigger,
  options: RotationOptions,
): Promise<RotationResult> {
  const { app, db } = context;
  const { signal } = app;
  // The request's time is taken before the wait, so that what another process does during the wait fulfils the request.
  const request = rotationRequest(options, await databaseNow(db));
  const lease = await waitForLease(app, db, job);
  const runId = options.runId ?? randomUUID();
  // A failure is ignored: the next write to the ledger fails for the same reason, a lost lease or an unreachable database.
  const renew = () => Promise.allSettled([renewLease(db, lease), heartbeatRun(db, runId)]);
  const renewing = setInterval(() => void renew(), RENEW_MS);
  try {
    await startRun(db, { runId, kind: "rotation", job: job.name, trigger });
    const result = await rotateKey({ job, deps: rotationDeps(context, job, lease), signal }, request);
    const error = result.errors[0];
    await finishRun(db, runId, result.status, error && app.scrubber.scrub(error));
    app.log.info({ rotation: job.name, runId, did: result.did, status: result.status }, "rotation finished");
    return result;
  } catch (error) {
    const status = signal.aborted ? "stopped" : "failed";
    await finishRun(db, runId, status, app.scrubber.scrub(errorText(error))).catch(() => {});
    throw error;
  } finally {
    clearInterval(renewing);
    await releaseLease(db, lease).catch(() => {});
  }
}

export function rotationRequest({ now, rollback }: RotationOptions, at: Date): RotationRequest {
  return { ...(now && { freshRequestedAt: at }), ...(rollback && { previousRequestedAt: at }) };
}

async function waitForLease({ log, actor, signal }: App, db: Database, { name }: RotationJob): Promise<Lease> {
  const until = performance.now() + LEASE_WAIT_MS_MAX;
  for (let attempt = 1; ; attempt++) {
    const lease = await takeLease(db, name, actor);
    if (lease) return lease;
    if (attempt === 1) log.info({ rotation: name }, "waiting for another process that rotates this key");
    if (performance.now() > until) {
      throw new AppError(
        "stopped",
        `another process is rotating ${name}; it has not finished in ${LEASE_WAIT_MS_MAX / 1000} s`,
      );
    }
    await sleep(LEASE_POLL_MS, undefined, { signal });
  }
}

/** Wires the steps of a rotation to the service, the ledger and the sinks. */
function rotationDeps(context: RotationContext, job: RotationJob, lease: Lease): RotationDeps {
  const { app, db, service, keys, masterKeys } = context;
  const { project } = job;
  const { signal, scrubber } = app;
  const log = app.log.child({ rotation: job.name });
  const ledger = openKeyLedger(db, { job, lease, actor: app.actor, masterKeys, scrubber, log });
  const token = (key: Secret) => fetchToken(service, key, signal);
  /** By intent. If a key is released and deleted in one run, its last use is read only once. */
  const lastUses = memoizeAsync<LastUse>();
  return {
    log,
    ledger,
    newIntentId: () => `ue-${randomBytes(6).toString("hex")}`,
    testSink,
    deliver: deliverKey,
    async inspect({ intentId, scopesGranted, deliveredTo }) {
      try {
        const { key } = await ledger.openKey(intentId);
        const refusal = await refusalReason(context, job, key, scopesGranted);
        return { intentId, refusal, stale: await staleFiles(job.deliver, deliveredTo, key) };
      } catch (error) {
        // The sealed key is damaged, so neither an export nor a later attempt can open it: it is replaced like one that the service refuses.
        if (isDamaged(error)) return { intentId, refusal: errorText(error), stale: new Map() };
        throw error;
      }
    },
    findCaller: () =>
      keys.useToRotate(job, async (key) => {
        await token(key);
        return key;
      }),
    async create(comment, caller) {
      const { scopes, expiresInDays } = job;
      const tags = makesSelfHosted(scopes) ? [] : job.tags;
      const expiresInSeconds = expiresInDays === undefined ? undefined : expiresInDays * DAY_SECONDS;
      const request = { comment, scopes, tags, expiresInSeconds };
      const created = await createKey(service, project.id, request, caller, signal);
      scrubber.add(created.key);
      return created;
    },
    verify: (key, granted) => verifyKey(context, job, key, granted),
    list: () => keys.useToRotate(job, (key) => listKeys(service, project.id, key, signal)),
    async callerIds() {
      const tokens = [await keys.useToRotate(job, token), await keys.use(project, token)];
      return tokens.flatMap((each) => each?.apiKeyId ?? []);
    },
    remove: (apiKeyId) => keys.useToRotate(job, (key) => deleteKey(service, project.id, apiKeyId, key, signal)),
    lastUse: (key) => lastUses(key.intentId, () => lastUse(context, job, key)),
    async clocks() {
      // If there was no answer yet, the service's time is not known, so one harmless call asks for it.
      if (!service.serviceTime()) await keys.useToRotate(job, token);
      return { database: await databaseNow(db), machine: new Date(), service: service.serviceTime() };
    },
  };
}
