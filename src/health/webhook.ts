// Calls the webhook and the dead man's switch. Their addresses are secrets: an error names only the configuration field. All
// attempts together have one time limit, redirects are not followed, and the body of the answer is ignored.

import { setTimeout as sleep } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { AppError, systemCode } from "../errors.ts";
import type { HttpProxy } from "../proxy.ts";
import { openAgent } from "../proxy-agent.ts";
import type { Secret } from "../secret.ts";

export type Receiver = {
  /** The configuration field with the receiver's address. */
  readonly path: "notify.webhook" | "notify.deadMan";
  readonly address: Secret;
  readonly proxy?: HttpProxy | undefined;
};

export type Receivers = { readonly webhook: Receiver | undefined; readonly deadMan: Receiver | undefined };

export type WebhookLimits = { readonly timeoutMs?: number; readonly delayMs?: number };

const TIMEOUT_MS = 10_000;
const DELAY_MS_FIRST = 1_000;
const ATTEMPTS_MAX = 3;
const BODY_BYTES_MAX = 64 * 1024;

/**
 * Posts `{ "text": … }` and nothing else: all chats accept that, and some, like Google's, refuse a message with a field they don't
 * know. The text may arrive twice if the answer to the first attempt was lost.
 */
export async function postText(to: Receiver, text: string, signal: AbortSignal, limits?: WebhookLimits): Promise<void> {
  const body = JSON.stringify({ text });
  await callWithRetries(to, { method: "POST", headers: { "content-type": "application/json" }, body }, signal, limits);
}

/** Tells the dead man's switch that all is well. */
export async function ping(to: Receiver, signal: AbortSignal, limits?: WebhookLimits): Promise<void> {
  await callWithRetries(to, { method: "GET" }, signal, limits);
}

type RequestParts = Pick<Dispatcher.RequestOptions, "method" | "body"> & { readonly headers?: Record<string, string> };

async function callWithRetries(
  { path, address, proxy }: Receiver,
  options: RequestParts,
  signal: AbortSignal,
  { timeoutMs = TIMEOUT_MS, delayMs = DELAY_MS_FIRST }: WebhookLimits = {},
): Promise<void> {
  const url = new URL(address.reveal());
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  let failure = `did not answer within ${timeoutMs / 1000} s`;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX && !limit.aborted; attempt++) {
    const outcome = await attemptOnce(openAgent({ allowH2: false }, proxy), url, options, limit);
    if (outcome === undefined) return;
    if (limit.aborted) break;
    failure = outcome.text;
    if (!outcome.retryable || attempt === ATTEMPTS_MAX) break;
    await sleep(delayMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2), undefined, { signal: limit }).catch(() => {});
  }
  signal.throwIfAborted();
  throw new AppError("unavailable", `${path} ${failure}`);
}

type AttemptFailure = { readonly text: string; readonly retryable: boolean };

/**
 * Undefined if the receiver accepted the request. The agent is closed after this attempt: with one call a minute, keeping a
 * connection open gains nothing.
 */
async function attemptOnce(
  agent: Dispatcher,
  url: URL,
  options: RequestParts,
  limit: AbortSignal,
): Promise<AttemptFailure | undefined> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = () => reject(limit.reason);
  limit.addEventListener("abort", end, { once: true });
  try {
    const request = agent.request({
      ...options,
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      signal: limit,
    });
    // undici ignores the signal while it connects.
    const { statusCode, body } = await Promise.race([request, ended]);
    await body.dump({ limit: BODY_BYTES_MAX, signal: limit }).catch(() => {});
    return statusFailure(statusCode);
  } catch (error) {
    return { text: `can't be reached: ${connectionFailure(error)}`, retryable: true };
  } finally {
    limit.removeEventListener("abort", end);
    await agent.destroy();
  }
}

function statusFailure(status: number): AttemptFailure | undefined {
  if (status < 300) return undefined;
  const redirect = status < 400 ? ", which leads elsewhere and is not followed: expected the address it leads to" : "";
  return { text: `answered ${status}${redirect}`, retryable: status === 429 || status >= 500 };
}

/** Only the error's code, because its message may contain the address. An AppError is safe to show: it names only the proxy. */
function connectionFailure(error: unknown): string {
  if (error instanceof AppError) return error.message;
  if (error instanceof AggregateError) return connectionFailure(error.errors[0]);
  return systemCode(error) || "unknown reason";
}
