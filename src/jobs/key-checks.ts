// What harmless calls to the service show about an API key: whether it works, and whether a replaced key is still used.

import { setTimeout as sleep } from "node:timers/promises";
import { max } from "date-fns/max";
import { min } from "date-fns/min";
import { rotationKeyName } from "../config/projects.ts";
import type { RotationConfig } from "../config/rotations.ts";
import { databaseNow } from "../db/connection/database.ts";
import type { OpenedKey } from "../db/keys/ledger.ts";
import { AppError, errorText } from "../errors.ts";
import type { LedgerKey } from "../keys/rotation-plan.ts";
import { holdsScope } from "../keys/scopes.ts";
import type { Secret } from "../secret.ts";
import { hasStatus } from "../service/answer.ts";
import { BREAKDOWN_SCOPES, fetchBreakdown } from "../service/breakdown.ts";
import type { Service } from "../service/client-types.ts";
import { isKeyRejected } from "../service/errors.ts";
import { fetchKeyInfo, listKeys } from "../service/keys.ts";
import { fetchProjects } from "../service/projects.ts";
import { addDays, type Day, dayOf, daysOf } from "../usage/days.ts";
import type { Source } from "../usage/dimensions.ts";
import { requestsOfDays } from "../usage/export-plan.ts";
import { type NormalisedSlice, normalise } from "../usage/normalise.ts";
import { ALL_USAGE } from "../usage/series.ts";
import type { RotationContext } from "./context.ts";

export function mayRead(source: Source, scopes: readonly string[]): boolean {
  return BREAKDOWN_SCOPES[source].some((scope) => holdsScope(scopes, scope));
}

/** It may take a moment until every part of the service knows a new key. */
const ATTEMPTS_MAX = 3;
const WAIT_MS = 1_000;

/** Throws if the service refuses the key. Asks for its id, and for a day's usage if its scopes allow. If it can't do either, asks for projects. */
export async function verifyKey(
  { app, service, db }: RotationContext,
  { name, project, scopes }: RotationConfig,
  { apiKeyId, key: unnamed, scopesGranted: granted }: OpenedKey,
  signal: AbortSignal = app.signal,
): Promise<void> {
  const key = unnamed.named(rotationKeyName(name));
  await retryWhileUnknown(service, key, signal, async () => {
    const info = await fetchKeyInfo(service, key, signal);
    if (info && info.apiKeyId !== apiKeyId) {
      throw new AppError("bad_answer", `the service takes the key ${apiKeyId} for ${info.apiKeyId}`);
    }
    if (mayRead("usage", granted.length > 0 ? granted : (info?.scopes ?? scopes))) {
      const yesterday = addDays(dayOf(await databaseNow(db)), -1);
      const series = { project, source: "usage", grouping: "none", filter: ALL_USAGE } as const;
      await fetchBreakdown(service, { series, window: { start: yesterday, end: yesterday } }, key, signal);
    } else if (!info) {
      await fetchProjects(service, key, signal);
    }
  });
}

/** After this time the rotation continues without knowing whether the active key works. */
const REFUSAL_CHECK_MS_MAX = 30_000;

/** Why the active key no longer works; undefined if it works, or if that can't be found out now. */
export async function refusalReason(context: RotationContext, rotation: RotationConfig, opened: OpenedKey) {
  const { service, app } = context;
  const signal = AbortSignal.any([app.signal, AbortSignal.timeout(REFUSAL_CHECK_MS_MAX)]);
  try {
    // A key that was refused in an earlier run may work again.
    service.forgetRefusals(opened.key);
    await verifyKey(context, rotation, opened, signal);
    return undefined;
  } catch (error) {
    app.signal.throwIfAborted();
    if (error instanceof AppError && isKeyRejected(error)) return "the service refuses the key in use";
    if (!(error instanceof AppError) && !signal.aborted) throw error;
    const facts = { rotation: rotation.name, reason: errorText(error) };
    app.log.warn(facts, "could not find out whether the key in use works");
    return undefined;
  }
}

/** Repeats the call after a 401, as a part of the service may not know a new key yet. */
export async function retryWhileUnknown(
  service: Pick<Service, "forgetRefusals">,
  key: Secret,
  signal: AbortSignal,
  call: () => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!hasStatus(error, 401) || attempt >= ATTEMPTS_MAX) throw error;
      service.forgetRefusals(key);
      await sleep(WAIT_MS, undefined, { signal });
    }
  }
}

/** Whether a replaced key was used in its grace period. "no" is certain: every day was read, some usage is recent, and keys are told apart. */
export type LastUse = { readonly seen: "yes" | "no" | "unknown"; readonly text: string };

/** If even the newest usage by any key is older than this, the breakdown lags behind, and proves nothing about the last days. */
const USAGE_LAG_DAYS_MAX = 3;

/** The time by each clock: the database's, which sets the times in the ledger, this machine's, and the service's once it has answered. */
export async function readClocks({ db, service }: Pick<RotationContext, "db" | "service">): Promise<Date[]> {
  return [await databaseNow(db), new Date(), service.serviceTime() ?? []].flat();
}

/** Reads the days of the grace period, and today. Usage on the first day may be from before the replacement; then the key is kept longer. */
export async function lastUse(context: RotationContext, rotation: RotationConfig, key: LedgerKey): Promise<LastUse> {
  const { service, keyRing } = context;
  const { signal } = context.app;
  const { project, graceDays } = rotation;
  const series = { project, source: "usage", grouping: "accessor", filter: ALL_USAGE } as const;
  try {
    const listed = await keyRing.useCreatorKey(rotation, (secret) => listKeys(service, project.id, secret, signal));
    const clocks = await readClocks(context);
    const [earliest, today] = [dayOf(min(clocks)), dayOf(max(clocks))];
    // With a wrong clock, the days that are read would not be the grace period. Around midnight, correct clocks may be a day apart.
    if (earliest < addDays(today, -1)) {
      const text = `the clocks of database, machine and service disagree: it is ${earliest} by one and ${today} by another`;
      return { seen: "unknown", text };
    }
    const start = addDays(earliest, -Math.max(graceDays, 1));
    const used: KeyUsage[] = [];
    for (const request of requestsOfDays(series, daysOf({ start, end: today }))) {
      const answer = await keyRing.use(project, (secret) => fetchBreakdown(service, request, secret, signal));
      used.push(...keyUsageIn(normalise(request, answer, today).slices));
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

/** Pure. `listed`: the ids of the keys that the service lists. */
export function lastUseVerdict(
  { apiKeyId }: Pick<LedgerKey, "apiKeyId">,
  used: readonly KeyUsage[],
  listed: ReadonlySet<string>,
  start: Day,
  today: Day,
): LastUse {
  const newestFirst = used.toSorted((a, b) => (a.day < b.day ? 1 : -1));
  const lastDay = newestFirst.find(({ accessor }) => accessor === apiKeyId)?.day;
  if (lastDay !== undefined) return { seen: "yes", text: `the breakdown by accessor shows usage on ${lastDay}` };
  // That this key does not appear means something only if accessors are the ids of keys.
  const newest = newestFirst.find(({ accessor }) => listed.has(accessor))?.day;
  if (newest === undefined)
    return { seen: "unknown", text: "the breakdown by accessor does not tell which key is which" };
  if (newest < addDays(today, -USAGE_LAG_DAYS_MAX))
    return { seen: "unknown", text: `the breakdown by accessor shows no usage by any key after ${newest}` };
  return { seen: "no", text: `the breakdown by accessor shows no usage since ${start}` };
}
