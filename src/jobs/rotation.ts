// Runs a rotation job once, under a lease, and records the run. Wires the rotation's steps to service, ledger and sinks.

import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { App } from "../app.ts";
import { memoizeAsync } from "../async.ts";
import { rotationKeyName } from "../config/projects.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { finishRun, heartbeatRun, startRun } from "../db/jobs/runs.ts";
import { LEASE_SECONDS, type Lease, releaseLease, renewLease, takeLease } from "../db/keys/lease.ts";
import { openKeyLedger } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import type { LedgerKey } from "../keys/ledger.ts";
import type { RotationRequest } from "../keys/plan.ts";
import { holdsScope, makesSelfHosted, type RotationJob } from "../keys/policy.ts";
import { type RotationResult, rotateKey } from "../keys/rotate.ts";
import type { LastUse, OpenedKey, RotationDeps } from "../keys/rotation-deps.ts";
import { isDamaged } from "../keys/seal.ts";
import { deliverKey, staleFiles, testSink } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { createKey, deleteKey, fetchToken, listKeys } from "../service/keys.ts";
import { fetchProjects } from "../service/projects.ts";
import type { Service } from "../service/service.ts";
import { fetchBreakdown } from "../service/usage.ts";
import { addDays, DAY_SECONDS, type Day, dayOf } from "../usage/days.ts";
import type { RunTrigger } from "../usage/export.ts";
import { normalise } from "../usage/normalise.ts";
import { splitWindow, type UsageRequest } from "../usage/plan.ts";
import type { NormalisedSlice } from "../usage/rows.ts";
import { ALL_USAGE } from "../usage/series.ts";
import type { RotationContext } from "./context.ts";

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

// Verifies an API key by calls to the service that do no harm: whether a new key works, and whether the active one still does.

/** A new key may need a moment until every part of the service knows it. */
const VERIFY_ATTEMPTS_MAX = 3;
const VERIFY_WAIT_MS = 1_000;

/**
 * Asks the service whose key it is, then makes a call that the key's scopes allow. Throws if the service does not accept the key.
 * `granted` are the scopes that it has; empty if the service did not say which it granted.
 */
async function verifyKey(
  context: RotationContext,
  job: RotationJob,
  { apiKeyId, key: unnamed }: OpenedKey,
  granted: readonly string[],
): Promise<void> {
  const { service, app } = context;
  const { signal } = app;
  const key = unnamed.named(rotationKeyName(job.name));
  await retryWhileUnknown(service, key, signal, async () => {
    const token = await fetchToken(service, key, signal);
    if (token && token.apiKeyId !== apiKeyId) {
      throw new AppError("bad_answer", `the service takes the key ${apiKeyId} for ${token.apiKeyId}`);
    }
    const scopes = granted.length > 0 ? granted : (token?.scopes ?? job.scopes);
    const canRead = ["usage:read", "project:read", "keys:read"].some((scope) => holdsScope(scopes, scope));
    // With a key that can read nothing, the only possible call is the one that asked whose it is.
    if (!token || canRead) await callAllowedByScopes(context, job, key, scopes, signal);
  });
}

/** How long a rotation waits to learn whether the active key works. After that it continues without knowing. */
const REFUSAL_CHECK_MS_MAX = 30_000;

/** Why the active key no longer works; undefined if it works, or if the service does not answer at present. */
async function refusalReason(
  context: RotationContext,
  job: RotationJob,
  unnamed: Secret,
  granted: readonly string[],
): Promise<string | undefined> {
  const { service, app } = context;
  const key = unnamed.named(rotationKeyName(job.name));
  const signal = AbortSignal.any([app.signal, AbortSignal.timeout(REFUSAL_CHECK_MS_MAX)]);
  const scopes = granted.length > 0 ? granted : job.scopes;
  try {
    // A key that was refused in an earlier run may work again.
    service.forgetAuthFailures(key);
    await retryWhileUnknown(service, key, signal, async () => {
      if (!(await fetchToken(service, key, signal))) await callAllowedByScopes(context, job, key, scopes, signal);
    });
    return undefined;
  } catch (error) {
    app.signal.throwIfAborted();
    if (error instanceof AppError && isKeyRejected(error)) return "the service refuses the key in use";
    if (!(error instanceof AppError) && !signal.aborted) throw error;
    app.log.warn({ rotation: job.name, reason: errorText(error) }, "not known whether the key in use works");
    return undefined;
  }
}

/** Repeats the call after a 401, which the service may answer until every part of it knows a new key. */
export async function retryWhileUnknown(
  service: Pick<Service, "forgetAuthFailures">,
  key: Secret,
  signal: AbortSignal,
  call: () => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const isUnknownYet = error instanceof AppError && error.details.status === 401;
      if (!isUnknownYet || attempt >= VERIFY_ATTEMPTS_MAX) throw error;
      service.forgetAuthFailures(key);
      await sleep(VERIFY_WAIT_MS, undefined, { signal });
    }
  }
}

/** One call that a key of these scopes may make, so that a refusal is about the key and not about the call. */
async function callAllowedByScopes(
  { service, db }: RotationContext,
  { project }: RotationJob,
  key: Secret,
  scopes: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (holdsScope(scopes, "usage:read") || holdsScope(scopes, "project:read")) {
    const yesterday = addDays(dayOf(await databaseNow(db)), -1);
    const series = { project, source: "usage", grouping: "none", filter: ALL_USAGE } as const;
    await fetchBreakdown(service, { series, window: { start: yesterday, end: yesterday } }, key, signal);
  } else if (holdsScope(scopes, "keys:read")) {
    await listKeys(service, project.id, key, signal);
  } else {
    await fetchProjects(service, key, signal);
  }
}

// When a replaced key was last used, as the breakdown by accessor shows it.

/** How old the newest usage by any key may be. If the service's answers lag further behind, they prove nothing about the last days. */
const USAGE_LAG_DAYS_MAX = 3;

/** Reads every day of the grace period and today. The first day may include usage from before the key was replaced. */
async function lastUse(
  { app, db, service, keys }: RotationContext,
  job: RotationJob,
  key: LedgerKey,
): Promise<LastUse> {
  const { project } = job;
  const { signal } = app;
  const today = dayOf(await databaseNow(db));
  const start = addDays(today, -Math.max(job.graceDays, 1));
  const series = { project, source: "usage", grouping: "accessor", filter: ALL_USAGE } as const;
  try {
    const listed = await keys.useToRotate(job, (caller) => listKeys(service, project.id, caller, signal));
    const used: KeyUsage[] = [];
    for (const window of splitWindow({ start, end: today })) {
      const request: UsageRequest = { series, window };
      const answer = await keys.use(project, (caller) => fetchBreakdown(service, request, caller, signal));
      used.push(...keyUsageIn(normalise(request, answer, today)));
    }
    return lastUseVerdict(key, used, new Set(listed?.map(({ apiKeyId }) => apiKeyId)), start, today);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof AppError)) throw error;
    return { seen: "unknown", text: `the breakdown by accessor could not be read: ${errorText(error)}` };
  }
}

type KeyUsage = { readonly day: Day; readonly accessor: string };

function keyUsageIn(slices: readonly NormalisedSlice[]): KeyUsage[] {
  return slices.flatMap(({ day, columns: { groups, metrics } }) =>
    groups.flatMap(({ display }, row) => {
      const isUsed = metrics.some((amounts) => String(amounts[row] ?? 0) !== "0");
      return isUsed && display !== null ? [{ day, accessor: display }] : [];
    }),
  );
}

/** Pure. `listed` are the ids of the keys that the service lists. */
export function lastUseVerdict(
  { apiKeyId }: Pick<LedgerKey, "apiKeyId">,
  used: readonly KeyUsage[],
  listed: ReadonlySet<string>,
  start: Day,
  today: Day,
): LastUse {
  const newest = (usage: readonly KeyUsage[]) =>
    usage
      .map(({ day }) => day)
      .sort()
      .at(-1);
  const own = newest(used.filter(({ accessor }) => accessor === apiKeyId));
  if (own !== undefined) return { seen: "yes", text: `the breakdown by accessor shows usage on ${own}` };
  // The absence of this key means something only if accessors are the ids of keys.
  const newestOfAny = newest(used.filter(({ accessor }) => listed.has(accessor)));
  if (newestOfAny === undefined) {
    return { seen: "unknown", text: "the breakdown by accessor does not tell which key is which" };
  }
  if (newestOfAny < addDays(today, -USAGE_LAG_DAYS_MAX)) {
    return { seen: "unknown", text: `the breakdown by accessor shows nothing newer than ${newestOfAny}, of any key` };
  }
  return { seen: "no", text: `the breakdown by accessor shows no usage since ${start}` };
}
