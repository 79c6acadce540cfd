// Verifies an API key by calls to the service that do no harm: whether a new key works, and whether the active one still does.

import { setTimeout as sleep } from "node:timers/promises";
import { rotationKeyName } from "../config/key-source.ts";
import { databaseNow } from "../db/connection/database.ts";
import { AppError, errorText } from "../errors.ts";
import { holdsScope, type RotationJob } from "../keys/policy.ts";
import type { OpenedKey } from "../keys/rotation-deps.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { fetchToken, listKeys } from "../service/keys.ts";
import { fetchProjects } from "../service/projects.ts";
import type { Service } from "../service/service.ts";
import { fetchBreakdown } from "../service/usage.ts";
import { addDays, dayOf } from "../usage/days.ts";
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
export async function refusalReason(
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
