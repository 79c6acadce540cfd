// Opens the service: one connection pool, one rate limiter and one memory of rejected keys for all calls.

import type { Dispatcher } from "undici";
import { type Sleep, sleep as sleepFor } from "../async.ts";
import { AppError } from "../errors.ts";
import { openAgent } from "../proxy-agent.ts";
import type { Secret } from "../secret.ts";
import { isIdentifier, isReadable, type Outcome, readAnswer } from "./answer.ts";
import { openAuthFailures } from "./auth-failures.ts";
import { connectionFailure, REDACT_ALL, type Reply, redactorFor, serviceTimeMs, statusFailure } from "./errors.ts";
import { openLimiter, type Rate } from "./limiter.ts";
import { openAttempts, withReport } from "./retry.ts";
import type { Service, ServiceAnswer, ServiceCall, ServiceDeps, ServiceSettings } from "./service.ts";

const WAIT_MS_MAX = 5 * 60_000;
const SHOWN_ID_LENGTH_MAX = 60;

/** About a hundred thousand rows. It bounds the memory that a body without an end takes. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
/**
 * This many chunks are joined into one, because a chunk takes more than a hundred bytes of memory besides its content, which can be
 * one byte. An ordinary body has fewer chunks.
 */
const CHUNKS_MAX = 4096;
/** The limit for a body that is read only for an error message. Of a longer one nothing is shown. */
const ERROR_BYTES_MAX = 64 * 1024;

/** The whole exchange must end within `seconds`, and ends when the signal is aborted. */
type TimeLimit = { readonly seconds: number; readonly signal: AbortSignal | undefined };

const CONNECTION_OPTIONS = {
  // Over HTTP/2, undici sends some requests a second time by itself, but a create must be sent once.
  allowH2: false,
  // `exchange` limits the whole attempt; these would limit the time between two bytes.
  headersTimeout: 0,
  bodyTimeout: 0,
} as const;

export function openService(settings: ServiceSettings, deps: ServiceDeps): Service {
  const { now = () => performance.now(), random = Math.random, sleep = sleepFor, waitMsMax = WAIT_MS_MAX } = deps;
  const { origin, pathname } = new URL(settings.baseUrl);
  const base: Base = { origin, path: pathname.replace(/\/$/, "") };
  const shared = openAgent({ ...CONNECTION_OPTIONS, connections: settings.maxConcurrent }, deps.proxy);
  // A new connection for each call: the service may close one that was kept alive just as a request is sent, and then nobody knows
  // whether the request arrived.
  const unshared = openAgent({ ...CONNECTION_OPTIONS, pipelining: 0 }, deps.proxy);
  const rate = deps.rate ?? ownRate(settings, now, sleep);
  const authFailures = openAuthFailures();
  const attempts = openAttempts({ rate, waitMsMax, random, sleep, log: deps.log });
  let serviceAheadMs: number | undefined;

  async function callService(call: ServiceCall, key: Secret, signal: AbortSignal): Promise<ServiceAnswer> {
    const options = requestOptions(base, settings.authScheme, call, key);
    const description = { ...call, what: `${call.method} /${call.path.join("/")}`, scopes: call.scopes ?? [] };
    // The first three parts of the path name the project: v1, projects, its id.
    const project = call.path.slice(0, 3).join("/");
    const use = { key, operation: description.what };
    const agent = call.retry ? shared : unshared;
    const limit = { seconds: settings.timeoutSeconds, signal: call.retry ? signal : undefined };
    // A 401 or 403 stays an error, as authFailures remembers it.
    const bodiless = (call.expected ?? []).filter((status) => status !== 401 && status !== 403);
    if (call.method === "DELETE") bodiless.push(204);
    const redact = call.secretAnswer ? REDACT_ALL : redactorFor(key, deps.scrub);

    async function send(): Promise<Outcome> {
      let reply: Reply;
      try {
        reply = await exchange(agent, options, limit);
      } catch (error) {
        limit.signal?.throwIfAborted();
        return { ok: false, failure: connectionFailure(description, error) };
      }
      const timeMs = serviceTimeMs(reply.headers);
      if (timeMs !== undefined) serviceAheadMs = timeMs - now();
      limit.signal?.throwIfAborted();
      if (reply.status >= 300 && !bodiless.includes(reply.status))
        return { ok: false, failure: statusFailure(description, reply, redact, Date.now()) };
      return readAnswer(description, reply, bodiless, redact);
    }

    async function prepare(): Promise<void> {
      authFailures.check(use);
      await call.beforeAttempt?.();
    }

    const attempt = {
      key: key.name,
      project,
      prepare,
      send: deps.onAttempt ? withReport(send, call, signal, now, deps.onAttempt) : send,
    };
    return await authFailures.guard(use, () => attempts(attempt, call.retry, signal));
  }

  return {
    baseUrl: settings.baseUrl,
    dialect: settings.dialect,
    call: callService,
    isPaused(keyName) {
      const ms = rate.pausedMs(keyName);
      return ms > 0 && ms <= waitMsMax;
    },
    forgetAuthFailures: authFailures.forget,
    serviceTime: () => (serviceAheadMs === undefined ? undefined : new Date(serviceAheadMs + now())),
    async close() {
      // Destroyed, not closed: close() would also wait for a connection that is never made.
      await Promise.all([shared.destroy(), unshared.destroy()]);
      await rate.rest();
    },
  };
}

/** Where the paths of the service begin; `path` has no slash at its end. */
type Base = { readonly origin: string; readonly path: string };

function requestOptions(
  base: Base,
  scheme: ServiceSettings["authScheme"],
  call: ServiceCall,
  key: Secret,
): Dispatcher.RequestOptions {
  return {
    origin: base.origin,
    path: pathOf(base, call),
    method: call.method,
    headers: headersOf(scheme, key, call.body !== undefined),
    ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
  };
}

/** Escaping is no guard: `..` escaped is still `..`, and leads out of the project. */
function pathOf(base: Base, { path, query }: ServiceCall): string {
  const wrong = path.find((part) => !isIdentifier(part));
  if (wrong !== undefined) {
    const shown = JSON.stringify(wrong.slice(0, SHOWN_ID_LENGTH_MAX));
    const message = `an id of the service has 1 to 128 letters, digits, "_" or "-", and this one is ${shown}`;
    throw new AppError("config", message, { details: { sent: "no" } });
  }
  const search = query === undefined || query.size === 0 ? "" : `?${query}`;
  return `${base.path}/${path.join("/")}${search}`;
}

function headersOf(scheme: ServiceSettings["authScheme"], key: Secret, hasBody: boolean): Record<string, string> {
  const value = key.reveal();
  if (!/^[\x21-\x7e]+$/.test(value)) {
    const message = "the key is empty, or holds a space, a line break or a letter that cannot be sent";
    throw new AppError("config", message, { details: { sent: "no" } });
  }
  return {
    authorization: scheme === "none" ? value : `${scheme} ${value}`,
    accept: "application/json",
    // A compressed answer can be a thousand times larger than what was received.
    "accept-encoding": "identity",
    "user-agent": "usage-export",
    ...(hasBody && { "content-type": "application/json" }),
  };
}

function ownRate(caps: ServiceSettings, now: () => number, sleep: Sleep): Rate {
  const limiter = openLimiter(() => caps, now, sleep);
  limiter.setShare(caps.maxConcurrent, Number.POSITIVE_INFINITY, false);
  return { ...limiter, rest: async () => {} };
}

// Sends a request once and reads the whole answer, by undici's events: a stream for each body would cost more than the rest of a call.

/** Rejects if there is no whole answer. If only an error message would be read from the body, it resolves without the body instead. */
function exchange(
  agent: Dispatcher,
  options: Dispatcher.RequestOptions,
  { seconds, signal }: TimeLimit,
): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  if (signal?.aborted) {
    // A signal that is already aborted fires no event.
    reject(signal.reason);
    return promise;
  }
  let reply: (Omit<Reply, "body"> & { readonly isWanted: boolean }) | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  let failure: Error | undefined;
  const body = openBody();

  const finish = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  };
  const fail = (error: Error) => {
    if (failure) return;
    failure = error;
    finish();
    if (reply?.isWanted === false) resolve({ ...reply, body: undefined });
    else reject(error);
    controller?.abort(error);
  };
  const stop = () => fail(signal?.reason);
  const timer = setTimeout(
    () => fail(new AppError("unavailable", `no whole answer within ${seconds} s`)),
    seconds * 1000,
  );
  signal?.addEventListener("abort", stop, { once: true });

  agent.dispatch(options, {
    onRequestStart(started) {
      controller = started;
      // The exchange may have ended while undici was connecting: then nothing is sent.
      if (failure) started.abort(failure);
    },
    onResponseStart(_controller, status, headers) {
      // An informational answer precedes the answer itself.
      if (status >= 200) reply = { status, headers, isWanted: isReadable(status, headers) };
    },
    onResponseData(_controller, chunk) {
      const bytesMax = reply?.isWanted ? BODY_BYTES_MAX : ERROR_BYTES_MAX;
      if (body.add(chunk) > bytesMax) fail(new AppError("bad_answer", `the answer is longer than ${bytesMax} bytes`));
    },
    onResponseEnd() {
      finish();
      if (reply) resolve({ status: reply.status, headers: reply.headers, body: body.join() });
    },
    onResponseError(_controller, error) {
      fail(error);
    },
  });
  return promise;
}

function openBody() {
  const joined: Uint8Array[] = [];
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  return {
    /** Returns how many bytes there are now. */
    add(chunk: Uint8Array): number {
      bytes += chunk.length;
      chunks.push(chunk);
      if (chunks.length === CHUNKS_MAX) joined.push(Buffer.concat(chunks.splice(0)));
      return bytes;
    },
    join: (): Uint8Array => Buffer.concat([...joined, ...chunks], bytes),
  };
}
