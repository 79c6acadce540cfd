// Tries an API key by a harmless call.

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { fetchBreakdown } from "../api/breakdown.ts";
import { refusesKey } from "../api/failure.ts";
import { fetchProjects, fetchToken, listKeys } from "../api/keys.ts";
import type { Service } from "../api/service.ts";
import { AppError, errorText } from "../errors.ts";
import type { RotationJob } from "../keys/policy.ts";
import { holdsScope } from "../keys/scopes.ts";
import type { Secret } from "../secret.ts";
import { addDays, type Day } from "../usage/day.ts";

export type KeyToTry = {
  readonly key: Secret;
  readonly apiKeyId: string;
  /** Empty where the service did not say. */
  readonly granted: readonly string[];
  readonly today: Day;
};

/** A key may need a moment until every part of the service knows it. */
const ATTEMPTS_MAX = 3;
const WAIT_MS = 1_000;

/** Throws where the service does not take the key for what its scopes allow. */
export async function tryKey(service: Service, job: RotationJob, tried: KeyToTry, signal: AbortSignal): Promise<void> {
  await whileUnknown(service, tried.key, signal, () => callWith(service, job, tried, signal));
}

/** How long a rotation waits to learn whether the key in use works. After that it continues without knowing. */
const REFUSAL_MS_MAX = 30_000;

/** Why the key in use no longer works; undefined if it works, and if the service does not tell now. */
export async function refusalOf(
  service: Service,
  job: RotationJob,
  tried: Omit<KeyToTry, "apiKeyId">,
  log: Logger,
  stop: AbortSignal,
): Promise<string | undefined> {
  const { key } = tried;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(REFUSAL_MS_MAX)]);
  try {
    // A key that was refused in an earlier run may work again.
    service.forgetRefusals(key);
    await whileUnknown(service, key, signal, async () => {
      if (!(await fetchToken(service, key, signal))) await callByScopes(service, job, tried, signal);
    });
    return undefined;
  } catch (error) {
    stop.throwIfAborted();
    if (error instanceof AppError && refusesKey(error)) return "the service refuses the key in use";
    if (!(error instanceof AppError) && !signal.aborted) throw error;
    log.warn({ reason: errorText(error) }, "not known whether the key in use works");
    return undefined;
  }
}

async function whileUnknown(
  service: Service,
  key: Secret,
  signal: AbortSignal,
  call: () => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const isUnknownYet = error instanceof AppError && error.details.status === 401;
      if (!isUnknownYet || attempt >= ATTEMPTS_MAX) throw error;
      service.forgetRefusals(key);
      await sleep(WAIT_MS, undefined, { signal });
    }
  }
}

/** The most telling call there is: who the key is, then what it is for. */
async function callWith(
  service: Service,
  job: RotationJob,
  { key, apiKeyId, granted, today }: KeyToTry,
  signal: AbortSignal,
): Promise<void> {
  const token = await fetchToken(service, key, signal);
  if (token && token.apiKeyId !== apiKeyId) {
    throw new AppError("bad_answer", `the service takes the key ${apiKeyId} for ${token.apiKeyId}`);
  }
  const known = granted.length > 0 ? granted : (token?.scopes ?? job.scopes);
  // Such a key may do no more than say who it is, and it has.
  if (token && !readsSomething(known)) return;
  await callByScopes(service, job, { key, granted: known, today }, signal);
}

function readsSomething(scopes: readonly string[]): boolean {
  return ["usage:read", "project:read", "keys:read"].some((scope) => holdsScope(scopes, scope));
}

/** One call that a key of these scopes may make, so that a refusal is about the key and not about the call. */
async function callByScopes(
  service: Service,
  job: RotationJob,
  { key, granted, today }: Omit<KeyToTry, "apiKeyId">,
  signal: AbortSignal,
): Promise<void> {
  const scopes = granted.length > 0 ? granted : job.scopes;
  const { project } = job;
  if (holdsScope(scopes, "usage:read") || holdsScope(scopes, "project:read")) {
    const yesterday = addDays(today, -1);
    const series = { project, grouping: "none", filter: { name: "all", features: {}, dimensions: {} } } as const;
    await fetchBreakdown(service, { series, window: { start: yesterday, end: yesterday } }, key, signal);
  } else if (holdsScope(scopes, "keys:read")) {
    await listKeys(service, project.id, key, signal);
  } else {
    await fetchProjects(service, key, signal);
  }
}
