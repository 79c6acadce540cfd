// The emulator of the speech service: a server of its own on 127.0.0.1, for the demo and for tests. It shares no code
// with the product, so that the product never checks itself.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Shape } from "./breakdown.ts";
import type { Dialect } from "./breakdown-query.ts";
import { addDays, dayOf } from "./days.ts";
import type { FaultPlan, SeenRequest } from "./faults.ts";
import { type ConsoleKey, type KeyState, openKeyStore } from "./keys.ts";
import { madeUpUsage } from "./made-up-usage.ts";
import type { Service } from "./routes.ts";
import { type LoggedRequest, serve } from "./serve.ts";
import type { UsageSource } from "./usage-record.ts";
import type { WindowMode } from "./usage-routes.ts";

export type EmulatorOptions = {
  /** Left out or 0: any free port. */
  readonly port?: number;
  /** What the made-up usage and the ids of the console keys follow from. */
  readonly seed?: number;
  readonly dialect?: Dialect;
  readonly window?: WindowMode;
  readonly shape?: Shape;
  /** "ignored": every answer is the one without a grouping. */
  readonly grouping?: "on" | "ignored";
  /** The first day that a cumulative summary counts; left out: 30 days before the emulator starts. */
  readonly countsFrom?: string;
  /** "missing": Get Fields answers 404. */
  readonly fields?: "on" | "missing";
  /** The only keys there are at first. Their projects are the only projects. */
  readonly consoleKeys: readonly ConsoleKey[];
  /** In place of the made-up usage. */
  readonly usage?: UsageSource;
  readonly fault?: FaultPlan;
  readonly now?: () => Date;
};

export type Emulator = AsyncDisposable & {
  /** The base URL, without a slash at its end. */
  readonly url: string;
  /** Every request so far, as they came. */
  readonly requests: readonly SeenRequest[];
  fault: FaultPlan | undefined;
  /** The service's clock. */
  now: () => Date;
  keys(): KeyState[];
  secretWorks(secret: string): boolean;
  /** Ends open connections, and with them every answer under way. Closing twice is closing once. */
  close(): Promise<void>;
};

export async function startEmulator(options: EmulatorOptions): Promise<Emulator> {
  const seed = options.seed ?? 1;
  const now = options.now ?? (() => new Date());
  const service: Service = {
    dialect: options.dialect ?? "interface",
    window: options.window ?? "on",
    shape: options.shape ?? "nested",
    grouping: options.grouping ?? "on",
    countsFrom: options.countsFrom ?? addDays(dayOf(now()), -30),
    fields: options.fields ?? "on",
    usage: options.usage ?? madeUpUsage(seed),
    keys: openKeyStore(options.consoleKeys, seed, now()),
  };
  const server = createServer();
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");

  const requests: LoggedRequest[] = [];
  const underWay = new Set<Promise<void>>();
  const close = async () => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
    await Promise.all(underWay);
  };
  const emulator: Emulator = {
    url: `http://127.0.0.1:${portOf(server.address())}`,
    requests,
    fault: options.fault,
    now,
    keys: () => service.keys.states(emulator.now()),
    secretWorks: (secret) => service.keys.find(secret, emulator.now()) !== undefined,
    close,
    [Symbol.asyncDispose]: close,
  };
  server.on("request", (request, response) => {
    const served = serve({ request, response, controls: emulator, service, log: requests });
    underWay.add(served);
    void served.finally(() => underWay.delete(served));
  });
  return emulator;
}

function portOf(address: ReturnType<Server["address"]>): number {
  if (address === null || typeof address === "string") throw new Error(`expected a TCP address, got ${address}`);
  return address.port;
}
