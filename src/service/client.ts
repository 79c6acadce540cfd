// Opens the service. Its calls share a rate limiter, a list of refused calls and, except POSTs, connections. answer.ts reads the body of a success;
// errors.ts and reply.ts make an error of anything else.

import { addAbortListener } from "node:events";
import type { Dispatcher } from "undici";
import { sleep } from "../async.ts";
import { AppError } from "../errors.ts";
import { openAgent } from "../proxy-agent.ts";
import type { Secret } from "../secret.ts";
import { isIdentifier, isReadable, type Outcome, readBody } from "./answer.ts";
import type { AuthScheme, Service, ServiceAnswer, ServiceCall, ServiceDeps, ServiceSettings } from "./client-types.ts";
import { connectionError, statusFailure } from "./errors.ts";
import { httpDateMs, REDACT_ALL, type Reply, redactorFor } from "./reply.ts";
import { Caller } from "./retry.ts";

/** If the service asks for a longer wait, the call fails at once. */
const REQUESTED_WAIT_MS_MAX = 5 * 60_000;
const SHOWN_ID_LENGTH_MAX = 60;
/** About a hundred thousand rows. It bounds the memory of a body without an end. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
/** The limit for a body that only serves an error message. Nothing of a longer body is shown. */
const ERROR_BYTES_MAX = 64 * 1024;

const CONNECTION_OPTIONS = {
  // Over HTTP/2, undici sends some requests a second time by itself, but a create must be sent once.
  allowH2: false,
  // `exchange` limits the whole attempt; these would limit the time between two bytes.
  headersTimeout: 0,
  bodyTimeout: 0,
} as const;

export function openService(settings: ServiceSettings, deps: ServiceDeps): Service {
  const { now = () => performance.now() } = deps;
  const base = new URL(settings.baseUrl);
  const shared = openAgent({ ...CONNECTION_OPTIONS, connections: settings.maxConcurrent }, deps.proxy);
  // A new connection for each POST: the service may close a kept connection just as a request is sent, and then nobody knows whether the
  // request arrived. For the same reason, no signal aborts a POST.
  const unshared = openAgent({ ...CONNECTION_OPTIONS, pipelining: 0 }, deps.proxy);
  const caller = new Caller({ waitMsMax: REQUESTED_WAIT_MS_MAX, random: Math.random, sleep, ...deps, now });
  /** Added to `now()`, gives the service's Unix time. */
  let serviceOffsetMs: number | undefined;

  async function callService(call: ServiceCall, key: Secret, signal: AbortSignal): Promise<ServiceAnswer> {
    const options = requestOptions(base, settings.authScheme, call, key);
    const isSentOnce = call.method === "POST";
    const agent = isSentOnce ? unshared : shared;
    const exchangeSignal = isSentOnce ? undefined : signal;
    const redact = isSentOnce ? REDACT_ALL : redactorFor(key, deps.scrub);
    async function send(mayBegin: () => boolean): Promise<Outcome | undefined> {
      let reply: Reply;
      try {
        reply = await exchange(agent, options, settings.timeoutSeconds, mayBegin, exchangeSignal);
      } catch (error) {
        if (error === NOT_BEGUN) return undefined;
        exchangeSignal?.throwIfAborted();
        return { error: connectionError(call, error) };
      }
      const timeMs = httpDateMs(reply.headers.date);
      if (timeMs !== undefined) serviceOffsetMs = timeMs - now();
      exchangeSignal?.throwIfAborted();
      return reply.status >= 300 ? statusFailure(call, reply, redact, Date.now()) : readBody(call, reply, redact);
    }
    return caller.withRetries(call, key, signal, send);
  }

  return {
    baseUrl: settings.baseUrl,
    dialect: settings.dialect,
    call: callService,
    forgetRefusals: (key) => caller.forgetRefusals(key),
    serviceTime: () => (serviceOffsetMs === undefined ? undefined : new Date(serviceOffsetMs + now())),
    async [Symbol.asyncDispose]() {
      // Destroyed, not closed: close() would also wait for a connection that is never made.
      await Promise.all([shared.destroy(), unshared.destroy()]);
      await deps.limiter.releaseSlots();
    },
  };
}

function requestOptions(base: URL, scheme: AuthScheme, call: ServiceCall, key: Secret): Dispatcher.RequestOptions {
  const { method, path, query, body } = call;
  // Escaping would be no guard: `..` escaped is still `..`, and leads out of the project.
  const wrong = path.find((part) => !isIdentifier(part));
  if (wrong !== undefined) {
    const shown = JSON.stringify(wrong.slice(0, SHOWN_ID_LENGTH_MAX));
    throw unsentError(`an id of the service has 1 to 128 letters, digits, "_" or "-", and this one is ${shown}`);
  }
  const secret = key.reveal();
  if (!/^[\x21-\x7e]+$/.test(secret)) {
    throw unsentError("the key is empty, or holds a space, a line break or a letter that cannot be sent");
  }
  const search = query === undefined || query.size === 0 ? "" : `?${query}`;
  return {
    origin: base.origin,
    path: `${base.pathname.replace(/\/$/, "")}/${path.join("/")}${search}`,
    method,
    headers: {
      authorization: scheme === "none" ? secret : `${scheme} ${secret}`,
      accept: "application/json",
      // A compressed answer can be a thousand times larger than what was received.
      "accept-encoding": "identity",
      "user-agent": "usage-export",
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  };
}

function unsentError(message: string): AppError {
  return new AppError("config", message, { details: { sent: "no" } });
}

const NOT_BEGUN = new Error("not begun");

/**
 * Sends a request once and reads the whole answer. Uses undici's events, as a stream for each body would cost more than the rest of a call.
 * Rejects if there is no whole answer within `seconds`, if it is too long, or if the signal is aborted. If a body is missing that
 * is only for an error message, resolves without it. If `mayBegin` returns false once the connection is made, sends nothing: rejects with NOT_BEGUN.
 */
async function exchange(
  agent: Dispatcher,
  options: Dispatcher.RequestOptions,
  seconds: number,
  mayBegin: () => boolean,
  signal: AbortSignal | undefined,
): Promise<Reply> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  let reply: (Reply & { readonly isBodyNeeded: boolean }) | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  let failure: Error | undefined;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const fail = (error: Error) => {
    if (failure) return;
    failure = error;
    if (reply?.isBodyNeeded === false) resolve(reply);
    else reject(error);
    controller?.abort(error);
  };
  const endLate = () => fail(new AppError("unavailable", `no whole answer within ${seconds} s`));
  const timer = setTimeout(endLate, seconds * 1000);
  using _ = signal && addAbortListener(signal, () => fail(signal.reason));

  agent.dispatch(options, {
    onRequestStart(started) {
      controller = started;
      // The exchange may have ended while undici was connecting: then nothing is sent.
      if (failure) started.abort(failure);
      else if (!mayBegin()) fail(NOT_BEGUN);
    },
    onResponseStart(_controller, status, headers) {
      // An informational answer precedes the answer itself.
      if (status >= 200) reply = { status, headers, body: undefined, isBodyNeeded: isReadable(status, headers) };
    },
    onResponseData(_controller, chunk) {
      const bytesMax = reply?.isBodyNeeded ? BODY_BYTES_MAX : ERROR_BYTES_MAX;
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > bytesMax) fail(new AppError("bad_answer", `the answer is longer than ${bytesMax} bytes`));
    },
    onResponseEnd() {
      if (reply) resolve({ ...reply, body: Buffer.concat(chunks) });
    },
    onResponseError: (_controller, error) => fail(error),
  });
  return await promise.finally(() => clearTimeout(timer));
}
