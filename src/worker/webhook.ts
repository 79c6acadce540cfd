// Calls the webhook and the dead man's switch, without a retry: the next tick calls again. Their addresses are secrets, so an error names only
// the configuration field. Redirects are not followed, and the body of the answer is ignored.

import { addAbortListener } from "node:events";
import { AppError, systemCode } from "../errors.ts";
import { type HttpProxy, tunnelError } from "../proxy.ts";
import { openAgent } from "../proxy-agent.ts";
import type { Secret } from "../secret.ts";

export type Receiver = {
  /** The configuration field with the receiver's address. */
  readonly field: "notify.webhook" | "notify.deadMan";
  readonly address: Secret;
  readonly proxy?: HttpProxy | undefined;
};

export type Receivers = { readonly webhook: Receiver | undefined; readonly deadMan: Receiver | undefined };

const TIMEOUT_MS = 10_000;
const BODY_BYTES_MAX = 64 * 1024;

/** Posts `{ "text": … }` and nothing else, as some chats refuse other fields. Without a text the call is a GET. Throws `unavailable`. */
export async function callReceiver(
  { field, address, proxy }: Receiver,
  text: string | undefined,
  signal: AbortSignal,
  timeoutMs = TIMEOUT_MS,
): Promise<void> {
  const { origin, pathname, search } = new URL(address.reveal());
  const post = { headers: { "content-type": "application/json" }, body: JSON.stringify({ text }) };
  const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  // The agent is closed after the call: with one call a minute, keeping a connection open gains nothing.
  const agent = openAgent({ allowH2: false }, proxy);
  // undici ignores the signal while it connects.
  using _ = addAbortListener(ended, () => void agent.destroy());
  try {
    const request = { origin, path: `${pathname}${search}`, signal: ended, ...(text !== undefined && post) };
    const { statusCode, body } = await agent.request({ ...request, method: text === undefined ? "GET" : "POST" });
    await body.dump({ limit: BODY_BYTES_MAX, signal: ended }).catch(() => {});
    if (statusCode >= 300) {
      const redirect = ", a redirect, which is not followed: configure the address it leads to";
      throw new AppError("unavailable", `${field} answered ${statusCode}${statusCode < 400 ? redirect : ""}`);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError) throw error;
    const late = `did not answer within ${timeoutMs / 1000} s`;
    throw new AppError("unavailable", `${field} ${ended.aborted ? late : `can't be reached: ${reasonOf(error)}`}`);
  } finally {
    await agent.destroy();
  }
}

/** Explains a refused tunnel. Of any other error, returns only the code, because its message may contain the address. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return reasonOf(error.errors[0]);
  return tunnelError(error)?.message ?? (systemCode(error) || "unknown reason");
}
