// The emulator of the speech service: a server on 127.0.0.1 for the demo and for tests. It shares no code with the product, so
// that the product is never checked by its own code.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "./answer.ts";
import type { Dialect, RowShape } from "./breakdown.ts";
import { addDays, dayOf } from "./days.ts";
import type { Fault, FaultPlan, SeenRequest } from "./faults.ts";
import { type ConsoleKey, type KeyState, openKeyStore } from "./keys.ts";
import { answerTo, type IncomingRequest, type Service, type WindowMode } from "./routes.ts";
import { madeUpUsage, type UsageSource } from "./usage.ts";

export type EmulatorOptions = {
  /** Left out or 0: any free port. */
  readonly port?: number;
  /** What the made-up usage and the ids of the console keys follow from. */
  readonly seed?: number;
  readonly dialect?: Dialect;
  readonly window?: WindowMode;
  readonly shape?: RowShape;
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

  const requests: MutableSeenRequest[] = [];
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
    const served = serveRequest({ request, response, controls: emulator, service, log: requests });
    underWay.add(served);
    void served.finally(() => underWay.delete(served));
  });
  return emulator;
}

function portOf(address: ReturnType<Server["address"]>): number {
  if (address === null || typeof address === "string") throw new Error(`expected a TCP address, got ${address}`);
  return address.port;
}

// Serves one request: log, fault, answer.

/** Only there to make a path a URL. */
const BASE = "http://emulator.test";

type MutableSeenRequest = { -readonly [Member in keyof SeenRequest]: SeenRequest[Member] };

/** What a test may change between two requests. */
type Controls = { readonly fault: FaultPlan | undefined; readonly now: () => Date };

type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly controls: Controls;
  readonly service: Service;
  readonly log: MutableSeenRequest[];
};

async function serveRequest(exchange: Exchange): Promise<void> {
  const { request, response, controls, service, log } = exchange;
  const now = controls.now();
  const caller = service.keys.find(secretOf(request), now);
  const { method = "", url: path = "" } = request;
  const seen: MutableSeenRequest = { method, path, keyId: caller?.apiKeyId, status: undefined, receivedAt: new Date() };
  log.push(seen);
  try {
    const asked = {
      method,
      url: URL.parse(path, BASE) ?? new URL(BASE),
      caller,
      contentType: request.headers["content-type"] ?? "",
      body: await text(request),
      now,
      requestId: randomUUID(),
    };
    await respond(response, asked, controls.fault?.(seen), service, (status) => {
      seen.status = status;
    });
  } catch (error) {
    answerInternalError(response, error);
  }
}

async function respond(
  response: ServerResponse,
  asked: IncomingRequest,
  fault: Fault | undefined,
  service: Service,
  onHead: (status: number) => void,
): Promise<void> {
  if (fault?.kind === "drop") return void response.destroy();
  if (fault?.kind === "answer") {
    const { status, headers = {}, body = "" } = fault;
    return sendResponse(response, { status, headers, body }, fault, onHead);
  }
  const answer = answerTo(asked, service);
  if (fault?.kind === "lose") return void response.destroy();
  return sendResponse(response, outgoingOf(answer, fault, asked.requestId, asked.now), fault, onHead);
}

/** Scheme and key, or the bare key. */
function secretOf(request: IncomingMessage): string {
  return /^(?:(?:Token|Bearer) +)?(\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
}

/** A mistake in a test's own usage or fault, mostly: it must not look like a service that does not answer. */
function answerInternalError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(500, { "content-type": "text/plain; charset=utf-8" }).end(`the emulator failed: ${error}\n`);
}

// Sends an answer, whole or broken as a fault wants it.

type Outgoing = {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Uint8Array;
};

/** The answer's Date header comes from the service's own clock. */
function outgoingOf(answer: Answer, fault: Fault | undefined, requestId: string, now: Date): Outgoing {
  const body = bodyOf(answer, fault);
  return {
    status: answer.status,
    headers: {
      "content-type": answer.kind === "text" ? "text/plain; charset=utf-8" : "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "dg-request-id": requestId,
      date: now.toUTCString(),
    },
    body,
  };
}

/** Resolves when there is nothing more to send. `onHead` is called as soon as the client may see a status. */
async function sendResponse(
  response: ServerResponse,
  { status, headers, body }: Outgoing,
  fault: Fault | undefined,
  onHead: (status: number) => void,
): Promise<void> {
  const gone = whenGone(response);
  if (fault?.kind === "delay") await sleep(fault.delayMs, undefined, { signal: gone }).catch(() => undefined);
  if (fault?.kind === "hold") await Promise.race([fault.until, whenAborted(gone)]);
  if (gone.aborted) return;

  onHead(status);
  response.writeHead(status, headers);
  const bytes = Buffer.from(body);
  if (fault?.kind === "stall") {
    response.flushHeaders();
    await whenAborted(gone);
  } else if (fault?.kind === "cut") {
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => response.destroy());
  } else if (fault?.kind === "trickle") {
    await trickle(response, bytes, fault.everyMs, gone);
  } else {
    response.end(bytes);
  }
}

async function trickle(response: ServerResponse, bytes: Buffer, everyMs: number, gone: AbortSignal): Promise<void> {
  for (let sent = 0; sent < bytes.length && !gone.aborted; sent++) {
    response.write(bytes.subarray(sent, sent + 1));
    await sleep(everyMs, undefined, { signal: gone }).catch(() => undefined);
  }
  response.end();
}

function bodyOf(answer: Answer, fault: Fault | undefined): string {
  if (answer.kind === "text") return answer.text;
  const json = fault?.kind === "body" ? fault.change(answer.json) : answer.json;
  return typeof json === "string" ? json : JSON.stringify(json);
}

function whenGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort());
  return controller.signal;
}

function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
