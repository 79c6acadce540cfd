// Checks of an API key: whether it works, when it was last used, and whether its files still hold it.

import { stat } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { lastDeliveredBy } from "../db/keys/events.ts";
import { sealedKey } from "../db/keys/keystore.ts";
import { readLedger } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import { activeKey, type Ledger, type LedgerKey } from "../keys/ledger.ts";
import type { Inspection } from "../keys/plan.ts";
import { holdsScope, type RotationJob, sinkId } from "../keys/policy.ts";
import type { LastUse, OpenedKey } from "../keys/rotation-deps.ts";
import { openSealedKey, readMasterKeys } from "../keys/seal.ts";
import { staleFiles } from "../keys/sinks.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { fetchProjects, fetchToken, listKeys } from "../service/keys.ts";
import type { Service } from "../service/service.ts";
import { fetchBreakdown } from "../service/usage.ts";
import type { NormalisedSlice } from "../usage/columns.ts";
import { addDays, type Day, dayOf } from "../usage/days.ts";
import { normalise } from "../usage/normalise.ts";
import { splitWindow, type UsageRequest } from "../usage/plan.ts";
import { ALL_USAGE } from "../usage/series.ts";
import type { RotationContext } from "./export-context.ts";

/** A new key may need a moment until every part of the service knows it. */
const VERIFY_ATTEMPTS_MAX = 3;
const VERIFY_WAIT_MS = 1_000;

/**
 * Asks the service whose key it is, then makes a call that the key's scopes allow. Throws if the service does not accept the key.
 * `granted` are the scopes that it has; empty if the service did not say which it granted.
 */
export async function verifyKey(
  context: RotationContext,
  job: RotationJob,
  { apiKeyId, key }: OpenedKey,
  granted: readonly string[],
): Promise<void> {
  const { service, app } = context;
  const { signal } = app;
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
export async function refusalReason(
  context: RotationContext,
  job: RotationJob,
  key: Secret,
  granted: readonly string[],
): Promise<string | undefined> {
  const { service, app } = context;
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
    const yesterday = addDays(await databaseDay(db), -1);
    const series = { project, grouping: "none", filter: ALL_USAGE } as const;
    await fetchBreakdown(service, { series, window: { start: yesterday, end: yesterday } }, key, signal);
  } else if (holdsScope(scopes, "keys:read")) {
    await listKeys(service, project.id, key, signal);
  } else {
    await fetchProjects(service, key, signal);
  }
}

async function databaseDay(db: Database): Promise<Day> {
  return dayOf(await databaseNow(db));
}

// When a replaced key was last used, as the breakdown by accessor shows it.

/** How old the newest usage by any key may be. If the service's answers lag further behind, they prove nothing about the last days. */
const USAGE_LAG_DAYS_MAX = 3;

/** Reads every day of the grace period and today. The first day may include usage from before the key was replaced. */
export async function lastUse(
  { app, db, service, keys }: RotationContext,
  job: RotationJob,
  key: LedgerKey,
): Promise<LastUse> {
  const { project } = job;
  const { signal } = app;
  const today = await databaseDay(db);
  const start = addDays(today, -Math.max(job.graceDays, 1));
  const series = { project, grouping: "accessor", filter: ALL_USAGE } as const;
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

// Whether the active keys are still in the files that they were delivered to.

/** What is wrong with the files of active keys, by rotation. Files on another machine are not checked. */
export async function deliveryWarnings(
  app: App,
  db: Database,
  { rotations }: Config,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const warnings = new Map<string, readonly string[]>();
  for (const job of rotations) {
    const active = await activeKeyOf(db, job);
    if (!active) continue;
    const stale = await staleFilesOf(app, db, job, active);
    const here: string[] = [];
    for (const sink of job.deliver) {
      const fault = stale.get(sinkId(sink));
      if (sink.kind !== "file" || fault === undefined || !(await isOnThisMachine(db, job, active, sink.path))) continue;
      here.push(`${fault}: the next rotation delivers the key again, or usage-export rotate now`);
    }
    if (here.length > 0) warnings.set(job.name, here);
  }
  return warnings;
}

/** Inspects the active key without a call to the service. */
export async function inspectFiles(
  app: App,
  db: Database,
  job: RotationJob,
  ledger: Ledger,
): Promise<Inspection | undefined> {
  const active = activeKey(ledger);
  if (!active) return undefined;
  return { intentId: active.intentId, refusal: undefined, stale: await staleFilesOf(app, db, job, active) };
}

async function staleFilesOf({ env, scrubber }: App, db: Database, job: RotationJob, active: LedgerKey) {
  let secret: Secret | undefined;
  try {
    const stored = await sealedKey(db, active.intentId);
    secret = stored && (await openSealedKey(stored, readMasterKeys(env), scrubber));
  } catch (error) {
    // A command that only reads works without the master key: then only the existence of the files is checked.
    if (!(error instanceof AppError)) throw error;
  }
  return staleFiles(job.deliver, active.deliveredTo, secret);
}

/** Also undefined if the rotation's keys belong to another project: each run of the rotation reports that. */
async function activeKeyOf(db: Database, job: RotationJob): Promise<LedgerKey | undefined> {
  try {
    return activeKey((await readLedger(db, job)).ledger);
  } catch (error) {
    if (error instanceof AppError && error.code === "config") return undefined;
    throw error;
  }
}

/** Whether the file should be on this machine. If its folder is not, another machine or container may have delivered the key there. */
async function isOnThisMachine(db: Database, job: RotationJob, key: LedgerKey, file: string): Promise<boolean> {
  const folder = await stat(path.dirname(file)).catch(() => undefined);
  if (folder?.isDirectory()) return true;
  const actor = await lastDeliveredBy(db, job.name, key.intentId, sinkId({ kind: "file", path: file }));
  return actor?.startsWith(`usage-export on ${os.hostname()} `) ?? false;
}
