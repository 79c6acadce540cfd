// Opens the service: one connection pool, one rate limiter and one memory of rejected keys for all calls.

import type { Dispatcher } from "undici";
import { sleep as sleepFor } from "../async.ts";
import { AppError } from "../errors.ts";
import { openAgent } from "../proxy-agent.ts";
import type { Secret } from "../secret.ts";
import { isIdentifier, isReadable, type Outcome, readAnswer, type ServiceAnswer } from "./answer.ts";
import { openAttempts, withReport } from "./attempts.ts";
import { openAuthFailures } from "./auth-failures.ts";
import { connectionFailure, REDACT_ALL, type Reply, redactorFor, statusFailure } from "./errors.ts";
import { openLeasedRateLimiter } from "./rate-lease.ts";
import { LocalRateLimiter, type OnLongWait } from "./rate-limiter.ts";
import { serviceTimeMs } from "./retry.ts";
import type { Service, ServiceCall, ServiceDeps, ServiceSettings } from "./service.ts";

const WAIT_MS_MAX = 5 * 60_000;
/** About a hundred thousand rows. It bounds the memory that a body without an end takes. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
/**
 * This many chunks are joined into one, because a chunk takes more than a hundred bytes of memory besides its content, which can be
 * one byte. An ordinary body has fewer chunks.
 */
const CHUNKS_MAX = 4096;
/** The limit for a body that is read only for an error message. Of a longer one nothing is shown. */
const ERROR_BYTES_MAX = 64 * 1024;

const SHOWN_ID_LENGTH_MAX = 60;

/** Limit for reading the service's clock: no command should wait long for a comparison of clocks. */
const FETCH_TIME_SECONDS = 3;

const CONNECTION_OPTIONS = {
  // Over HTTP/2, undici sends some requests a second time by itself, but a create must be sent once.
  allowH2: false,
  // `exchange` limits the whole attempt; these would limit the time between two bytes.
  headersTimeout: 0,
  bodyTimeout: 0,
} as const;

export function openService(settings: ServiceSettings, deps: ServiceDeps): Service {
  const { now = () => performance.now(), random = Math.random, sleep = sleepFor, waitMsMax = WAIT_MS_MAX } = deps;
  const base = new URL(settings.baseUrl);
  const shared = openAgent({ ...CONNECTION_OPTIONS, connections: settings.maxConcurrent }, deps.proxy);
  // A new connection for each call: the service may close one that was kept alive just as a request is sent, and then nobody knows
  // whether the request arrived.
  const unshared = openAgent({ ...CONNECTION_OPTIONS, pipelining: 0 }, deps.proxy);
  const limits = { ...settings, waitMsMax };
  const limiter = deps.lease
    ? openLeasedRateLimiter(limits, deps.lease, now, sleep, logLongWaits(deps.log))
    : new LocalRateLimiter(limits, now, sleep);
  const authFailures = openAuthFailures();
  const attempts = openAttempts({ limiter, waitMsMax, random, sleep, log: deps.log });
  let serviceAheadMs: number | undefined;

  async function callService(call: ServiceCall, key: Secret, signal: AbortSignal): Promise<ServiceAnswer> {
    const options = requestOptions(base, settings.authScheme, call, key);
    const description = { what: `${call.method} /${call.path.join("/")}`, scopes: call.scopes ?? [] };
    // The first three parts of the path name the project: v1, projects, its id.
    const use = { key, project: call.path.slice(0, 3).join("/"), operation: description.what };
    const agent = call.retry ? shared : unshared;
    const limit = { seconds: settings.timeoutSeconds, signal: call.retry ? signal : undefined };
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
      if (reply.status >= 300) return { ok: false, failure: statusFailure(description, reply, redact, Date.now()) };
      return readAnswer(description, reply, call.method === "DELETE", redact);
    }

    async function prepare(): Promise<void> {
      authFailures.check(use);
      await call.beforeAttempt?.();
    }

    const attempt = { prepare, send: deps.onAttempt ? withReport(send, call, signal, now, deps.onAttempt) : send };
    return await authFailures.guard(use, signal, () => attempts(attempt, call.retry, signal));
  }

  return {
    baseUrl: settings.baseUrl,
    dialect: settings.dialect,
    call: callService,
    forgetAuthFailures: authFailures.forget,
    serviceTime: () => (serviceAheadMs === undefined ? undefined : new Date(serviceAheadMs + now())),
    async fetchTime(signal) {
      const head = { origin: base.origin, path: base.pathname, method: "HEAD" } as const;
      const reply = await exchange(shared, head, { seconds: FETCH_TIME_SECONDS, signal }).catch(() => undefined);
      signal.throwIfAborted();
      const timeMs = reply && serviceTimeMs(reply.headers);
      return timeMs === undefined ? undefined : new Date(timeMs);
    },
    async close() {
      // Destroyed, not closed: close() would also wait for a connection that is never made.
      await Promise.all([shared.destroy(), unshared.destroy(), limiter.close()]);
    },
  };
}

function requestOptions(
  base: URL,
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
function pathOf(base: URL, { path, query }: ServiceCall): string {
  const wrong = path.find((part) => !isIdentifier(part));
  if (wrong !== undefined) {
    const shown = JSON.stringify(wrong.slice(0, SHOWN_ID_LENGTH_MAX));
    const message = `an id of the service has 1 to 128 letters, digits, "_" or "-", and this one is ${shown}`;
    throw new AppError("config", message, { details: { sent: "no" } });
  }
  const search = query === undefined || query.size === 0 ? "" : `?${query}`;
  return `${base.pathname.replace(/\/$/, "")}/${path.join("/")}${search}`;
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

function logLongWaits(log: ServiceDeps["log"]): OnLongWait {
  return (wait, seconds) => {
    if (wait === "over") log.info({ waitedSeconds: seconds }, "calls to the service go on");
    else if (wait === "pause")
      log.warn({ seconds }, "calls to the service wait, as it asked for a pause; usage-export resume-calls ends it");
    else
      log.warn(
        { waitedSeconds: seconds },
        "calls to the service wait: other processes use all of service.maxConcurrent",
      );
  };
}

type TimeLimit = { readonly seconds: number; readonly signal: AbortSignal | undefined };

/** Sends once and reads the answer, all of it within the limit. */
async function exchange(agent: Dispatcher, options: Dispatcher.RequestOptions, limit: TimeLimit): Promise<Reply> {
  // A signal that is already aborted fires no event.
  limit.signal?.throwIfAborted();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const controller = new AbortController();
  const end = (reason: unknown) => {
    controller.abort(reason);
    // While undici is connecting it does not look at its signal.
    reject(reason);
  };
  const timer = setTimeout(
    () => end(new AppError("unavailable", `no whole answer within ${limit.seconds} s`)),
    limit.seconds * 1000,
  );
  const stop = () => end(limit.signal?.reason);
  limit.signal?.addEventListener("abort", stop, { once: true });
  try {
    const { statusCode, headers, body } = await Promise.race([
      agent.request({ ...options, signal: controller.signal }),
      ended,
    ]);
    return { status: statusCode, headers, body: await readBody(body, isReadable(statusCode, headers)) };
  } finally {
    clearTimeout(timer);
    limit.signal?.removeEventListener("abort", stop);
  }
}

/** Returns the whole body. If it is cut or too long, throws if it is wanted, and otherwise returns undefined. */
async function readBody(body: Dispatcher.ResponseData["body"], isWanted: boolean): Promise<Uint8Array | undefined> {
  try {
    return await readAtMost(isWanted ? BODY_BYTES_MAX : ERROR_BYTES_MAX, body);
  } catch (error) {
    if (isWanted) throw error;
    return undefined;
  }
}

/** Reads by events: iterating over the body would copy the chunks that arrive together, and keep them and the copy. */
function readAtMost(bytesMax: number, body: Dispatcher.ResponseData["body"]): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const joined: Uint8Array[] = [];
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  body.on("data", (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      body.destroy(new AppError("bad_answer", `the answer is longer than ${bytesMax} bytes`));
      return;
    }
    chunks.push(chunk);
    if (chunks.length === CHUNKS_MAX) joined.push(Buffer.concat(chunks.splice(0)));
  });
  body.once("end", () => resolve(Buffer.concat([...joined, ...chunks])));
  body.once("error", reject);
  return promise;
}
