// Opens the service: one connection pool, one rate limiter and one memory of rejected keys for all calls.

import type { Dispatcher } from "undici";
import { sleep as sleepFor } from "../async.ts";
import { AppError } from "../errors.ts";
import { openAgent } from "../proxy-agent.ts";
import { isReadable, type Outcome, readAnswer } from "./answer.ts";
import { type Attempt, openAttempts } from "./attempts.ts";
import { openAuthFailures } from "./auth-failures.ts";
import {
  type CallDescription,
  connectionFailure,
  REDACT_ALL,
  type Redact,
  type Reply,
  redactorFor,
  statusFailure,
} from "./errors.ts";
import { openLeasedRateLimiter } from "./rate-lease.ts";
import { LocalRateLimiter, type OnLongWait } from "./rate-limiter.ts";
import { headersOf, pathOf } from "./request.ts";
import { serviceTimeMs } from "./retry.ts";
import { type Service, type ServiceDeps, type ServiceSettings, withReport } from "./service.ts";

const WAIT_MS_MAX = 5 * 60_000;
/** About a hundred thousand rows. A body without an end is held up to here, so this bounds what one costs. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
/** A piece costs more than a hundred bytes beside what it holds, and can hold one. Those of an ordinary body are never as many. */
const CHUNKS_MAX = 4096;
/** Of an answer that is not a success only its first words are shown. */
const ERROR_BYTES_MAX = 64 * 1024;

/** Limit for reading the service's clock: no command should wait long for a comparison of clocks. */
const FETCH_TIME_SECONDS = 3;

const CONNECTION_OPTIONS = {
  // Over HTTP/2 undici sends some requests a second time by itself, and a create must go out once.
  allowH2: false,
  // An attempt has one time limit for all of it; these would be between two bytes.
  headersTimeout: 0,
  bodyTimeout: 0,
} as const;

export function openService(settings: ServiceSettings, deps: ServiceDeps): Service {
  const { now = () => performance.now(), random = Math.random, sleep = sleepFor, waitMsMax = WAIT_MS_MAX } = deps;
  const base = new URL(settings.baseUrl);
  const shared = openAgent({ ...CONNECTION_OPTIONS, connections: settings.maxConcurrent }, deps.proxy);
  // A connection of its own for each: one kept alive may be closed by the service just as a request goes out, and nobody
  // knows then whether it arrived.
  const unshared = openAgent({ ...CONNECTION_OPTIONS, pipelining: 0 }, deps.proxy);
  const limits = { ...settings, waitMsMax };
  const limiter = deps.lease
    ? openLeasedRateLimiter(limits, deps.lease, now, sleep, logLongWaits(deps.log))
    : new LocalRateLimiter(limits, now, sleep);
  const refusals = openAuthFailures();
  let serviceAheadMs: number | undefined;
  const recordServiceTime = (headers: Reply["headers"]) => {
    const timeMs = serviceTimeMs(headers);
    if (timeMs !== undefined) serviceAheadMs = timeMs - now();
  };
  const attempts = openAttempts({ limiter, waitMsMax, random, sleep, log: deps.log });

  return {
    baseUrl: settings.baseUrl,
    dialect: settings.dialect,
    async call(call, key, signal) {
      const path = pathOf(base, call);
      const description = { what: `${call.method} /${call.path.join("/")}`, scopes: call.scopes ?? [] };
      // The first three parts of the path name the project: v1, projects, its id.
      const use = { key, project: call.path.slice(0, 3).join("/"), operation: description.what };
      const options: Dispatcher.RequestOptions = {
        origin: base.origin,
        path,
        method: call.method,
        headers: headersOf(settings.authScheme, key, call.body !== undefined),
        ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
      };
      const limit = { seconds: settings.timeoutSeconds, signal: call.retry ? signal : undefined };
      const redact = call.secretAnswer ? REDACT_ALL : redactorFor(key, deps.scrub);

      const send = () =>
        attemptOnce(call.retry ? shared : unshared, options, { limit, description, redact, recordServiceTime });
      const attempt: Attempt = {
        async prepare() {
          refusals.check(use);
          await call.beforeAttempt?.();
        },
        send: deps.onAttempt ? withReport(send, call, signal, now, deps.onAttempt) : send,
      };
      return await refusals.guard(use, signal, () => attempts(attempt, call.retry, signal));
    },
    forgetAuthFailures: refusals.forget,
    serviceTime: () => (serviceAheadMs === undefined ? undefined : new Date(serviceAheadMs + now())),
    async fetchTime(signal) {
      const question = { origin: base.origin, path: base.pathname, method: "HEAD" } as const;
      const reply = await exchange(shared, question, { seconds: FETCH_TIME_SECONDS, signal }).catch(() => undefined);
      signal.throwIfAborted();
      const timeMs = reply && serviceTimeMs(reply.headers);
      return timeMs === undefined ? undefined : new Date(timeMs);
    },
    async close() {
      // Waiting for what is still open could take as long as a connection that is never made.
      await Promise.all([shared.destroy(), unshared.destroy(), limiter.close()]);
    },
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

type AttemptDeps = {
  readonly limit: TimeLimit;
  readonly description: CallDescription;
  readonly redact: Redact;
  /** Receives the headers of every answer, to read the service's time from them. */
  readonly recordServiceTime: (headers: Reply["headers"]) => void;
};

async function attemptOnce(
  agent: Dispatcher,
  options: Dispatcher.RequestOptions,
  { limit, description, redact, recordServiceTime }: AttemptDeps,
): Promise<Outcome> {
  let reply: Reply;
  try {
    reply = await exchange(agent, options, limit);
  } catch (error) {
    limit.signal?.throwIfAborted();
    return { ok: false, failure: connectionFailure(description, error) };
  }
  recordServiceTime(reply.headers);
  limit.signal?.throwIfAborted();
  if (reply.status >= 300) return { ok: false, failure: statusFailure(description, reply, redact, Date.now()) };
  return readAnswer(description, reply, options.method === "DELETE", redact);
}

/** Sends once and reads the answer, all of it within the limit. */
async function exchange(agent: Dispatcher, options: Dispatcher.RequestOptions, limit: TimeLimit): Promise<Reply> {
  // Of what is aborted already no event tells.
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

/** The whole body, or undefined for one that is cut or too long where only words are read. */
async function readBody(body: Dispatcher.ResponseData["body"], isWanted: boolean): Promise<Uint8Array | undefined> {
  try {
    return await readAtMost(isWanted ? BODY_BYTES_MAX : ERROR_BYTES_MAX, body);
  } catch (error) {
    if (isWanted) throw error;
    return undefined;
  }
}

/** By events, as iterating puts together what was read at once: a copy beside each of the pieces. */
function readAtMost(bytesMax: number, body: Dispatcher.ResponseData["body"]): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const read: Uint8Array[] = [];
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  body.on("data", (piece: Uint8Array) => {
    bytes += piece.length;
    if (bytes > bytesMax) {
      body.destroy(new AppError("bad_answer", `the answer is longer than ${bytesMax} bytes`));
      return;
    }
    pieces.push(piece);
    if (pieces.length === CHUNKS_MAX) read.push(Buffer.concat(pieces.splice(0)));
  });
  body.once("end", () => resolve(Buffer.concat([...read, ...pieces])));
  body.once("error", reject);
  return promise;
}
