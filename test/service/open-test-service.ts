// A client of the service for a test. Its clock moves only by `sleep`, and its log lines are kept.

import { pino } from "pino";
import { onTestFinished } from "vitest";
import type { KeyRing } from "../../src/jobs/key-ring.ts";
import { Secret } from "../../src/secret.ts";
import { openService } from "../../src/service/client.ts";
import type { Service, ServiceCall, ServiceDeps, ServiceSettings } from "../../src/service/client-types.ts";
import { Limiter } from "../../src/service/limiter.ts";
import { WAIT_MS_MAX } from "../support/limits.ts";
import { type Script, scriptedServer } from "../support/scripted-server.ts";

export const KEY_TEXT = "sk_CANARY_0123456789abcdef";
export const KEY = new Secret(KEY_TEXT);
const BREAKDOWN_PATH = ["v1", "projects", "p1", "usage", "breakdown"];
export const READ: ServiceCall = { operation: "breakdown", method: "GET", path: BREAKDOWN_PATH };

/** Every project has this key. */
export const KEY_RING: KeyRing = {
  use: (_, call) => call(KEY),
  useCreatorKey: (_, call) => call(KEY),
};

export type TestService = Service & {
  /** The duration of each sleep in milliseconds, in the order in which they began. */
  readonly sleeps: readonly number[];
  readonly now: () => number;
  readonly lines: readonly string[];
};

export function openTestService(
  origin: string,
  settings: Partial<ServiceSettings> = {},
  deps: Partial<ServiceDeps> = {},
): TestService {
  const sleeps: number[] = [];
  const lines: string[] = [];
  let nowMs = 0;
  const {
    now = () => nowMs,
    sleep = async (ms: number, signal: AbortSignal) => {
      signal.throwIfAborted();
      sleeps.push(ms);
      nowMs += ms;
    },
  } = deps;
  const all: ServiceSettings = {
    ...{ baseUrl: origin, authScheme: "Token", dialect: "interface" },
    ...{ requestsPerSecond: 1000, maxConcurrent: 4, timeoutSeconds: 30 },
    ...settings,
  };
  const limiter = new Limiter(all, now, sleep);
  // This process has all slots for ever, and its first call need not wait.
  limiter.setShare(all.maxConcurrent, Number.POSITIVE_INFINITY, { startsLater: false });
  const service = openService(all, {
    log: pino({}, { write: (line) => lines.push(line) }),
    now,
    random: () => 1,
    sleep,
    limiter: Object.assign(limiter, { releaseSlots: async () => {} }),
    scrub: (text) => text,
    ...deps,
  });
  return { ...service, sleeps, now, lines };
}

/** Opens a scripted server and a client for it, both closed at the end of the test. `read` makes one call. */
export async function serve(script: Script, settings?: Partial<ServiceSettings>, deps?: Partial<ServiceDeps>) {
  const server = await scriptedServer(script);
  const service = openTestService(server.origin, settings, deps);
  onTestFinished(async () => {
    await service[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });
  return {
    server,
    service,
    read: (part: Partial<ServiceCall> = {}) => service.call({ ...READ, ...part }, KEY, hangSignal()),
  };
}

/** A signal that is aborted only if the test hangs. */
export function hangSignal(): AbortSignal {
  return AbortSignal.timeout(WAIT_MS_MAX);
}
