// The faults that a test can inject into the answer to one request.

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
import type { BreakdownRow } from "./breakdown.ts";
import { addDays, dayOf } from "./days.ts";
import { type ConsoleKey, type KeyState, openKeyStore } from "./keys.ts";
import { type AccountProject, type Answer, answerTo, type IncomingRequest, type Json, type Service } from "./routes.ts";
import { madeUpUsage } from "./usage.ts";

/** A request in the log, with the id of its key and never the secret. */
export type SeenRequest = {
  readonly method: string;
  /** As it came, with the query. */
  readonly path: string;
  /** Undefined if no working key has the secret. */
  readonly keyId: string | undefined;
  /** Set when the answer is sent; undefined until then, and for good if the connection ends before. */
  status: number | undefined;
  /** By the clock of this machine, not by the service's. */
  readonly receivedAt: Date;
};

export type Fault =
  /** This answer in place of the good one; the request has no effect. The headers may state a wrong length or encoding. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers?: OutgoingHttpHeaders;
      readonly body?: string | Uint8Array;
    }
  /** The good answer with another content. If the content is a string, it is sent as it is, and not as JSON. */
  | { readonly kind: "body"; readonly change: (json: Json) => unknown }
  /** The connection ends before any answer, and the request has no effect. */
  | { readonly kind: "drop" }
  /** The request has its effect, and the connection ends before any answer. */
  | { readonly kind: "lose" }
  /** The connection ends in the middle of the good answer. */
  | { readonly kind: "cut" }
  /** The headers of the good answer, and then nothing until the client goes. */
  | { readonly kind: "stall" }
  /** The good answer, byte by byte. */
  | { readonly kind: "trickle"; readonly everyMs: number }
  /** The good answer at the time of the request, sent later. */
  | { readonly kind: "delay"; readonly delayMs: number }
  /** The same, sent when the promise resolves, for tests that need an order of events instead of a time. */
  | { readonly kind: "hold"; readonly until: Promise<unknown> };

/** Called for every request; undefined: the good answer is sent. */
export type FaultPlan = (request: SeenRequest) => Fault | undefined;

/** A breakdown with changed rows. */
export function changeRows(change: (rows: readonly BreakdownRow[]) => readonly unknown[]): Fault {
  return {
    kind: "body",
    change: (json) => (Array.isArray(json.results) ? { ...json, results: change(json.results) } : json),
  };
}

// The emulator of the speech service: a server on 127.0.0.1 for the demo and for tests. It shares no code with the product, so
// that the product is never checked by its own code.

/** Left out, `usage` is made up, and `countsFrom` is 30 days before the emulator starts. */
export type EmulatorOptions = Partial<Omit<Service, "keys">> & {
  /** Left out or 0: any free port. */
  readonly port?: number;
  /** The made-up usage and the ids of the console keys are derived from the seed. */
  readonly seed?: number;
  /** The only keys at the start. Their projects are the only projects, unless `projects` names others. */
  readonly consoleKeys: readonly ConsoleKey[];
  readonly fault?: FaultPlan;
  readonly now?: () => Date;
};

/** What a test may change between two requests. */
type Controls = {
  fault: FaultPlan | undefined;
  /** The service's clock. */
  now: () => Date;
};

export type Emulator = AsyncDisposable &
  Controls & {
    /** The base URL, without a slash at its end. */
    readonly url: string;
    /** Every request so far, in the order they came. */
    readonly requests: readonly Readonly<SeenRequest>[];
    keys(): KeyState[];
    secretWorks(secret: string): boolean;
    /** Ends open connections, and with them the answers in progress. A second call does nothing. */
    close(): Promise<void>;
  };

export async function startEmulator(options: EmulatorOptions): Promise<Emulator> {
  const { port = 0, seed = 1, consoleKeys, fault, now = () => new Date(), ...settings } = options;
  const service: Service = {
    ...{ dialect: "interface", window: "on", grouping: "on", fields: "on", billing: "on" },
    countsFrom: addDays(dayOf(now()), -30),
    usage: madeUpUsage(seed),
    projects: () => projectsOf(consoleKeys),
    pageSize: undefined,
    ...settings,
    keys: openKeyStore(consoleKeys, seed, now()),
  };
  const server = createServer();
  server.listen(port, "127.0.0.1");
  await once(server, "listening");

  const requests: SeenRequest[] = [];
  const inProgress = new Set<Promise<void>>();
  const close = async () => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
    await Promise.all(inProgress);
  };
  const emulator: Emulator = {
    url: `http://127.0.0.1:${portOf(server.address())}`,
    requests,
    fault,
    now,
    keys: () => service.keys.states(emulator.now()),
    secretWorks: (secret) => service.keys.find(secret, emulator.now()) !== undefined,
    close,
    [Symbol.asyncDispose]: close,
  };
  server.on("request", (request, response) => {
    const served = serveRequest(request, response, { controls: emulator, requests, service });
    inProgress.add(served);
    void served.finally(() => inProgress.delete(served));
  });
  return emulator;
}

/** The projects of an account are those of its keys, unless the options name others. */
function projectsOf(consoleKeys: readonly ConsoleKey[]): readonly AccountProject[] {
  const ids = new Set(consoleKeys.map(({ projectId }) => projectId));
  return [...ids].map((id) => ({ id, name: id }));
}

function portOf(address: ReturnType<Server["address"]>): number {
  if (address === null || typeof address === "string") throw new Error(`expected a TCP address, got ${address}`);
  return address.port;
}

/** Only for making a URL from a path. */
const BASE = "http://emulator.test";

type Serving = { readonly controls: Controls; readonly requests: SeenRequest[]; readonly service: Service };

/** Logs the request, lets the fault plan decide about it, and answers. */
async function serveRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { controls, requests, service }: Serving,
): Promise<void> {
  const now = controls.now();
  const caller = service.keys.find(secretOf(request), now);
  const { method = "", url: path = "" } = request;
  const seen: SeenRequest = { method, path, keyId: caller?.apiKeyId, status: undefined, receivedAt: new Date() };
  requests.push(seen);
  try {
    const incoming = {
      method,
      url: URL.parse(path, BASE) ?? new URL(BASE),
      caller,
      contentType: request.headers["content-type"] ?? "",
      body: await text(request),
      now,
      requestId: randomUUID(),
    };
    const fault = controls.fault?.(seen);
    if (fault?.kind === "drop") return void response.destroy();
    const outgoing = fault?.kind === "answer" ? fault : outgoingOf(answerTo(incoming, service), fault, incoming);
    if (fault?.kind === "lose") return void response.destroy();
    await send(response, outgoing, fault, seen);
  } catch (error) {
    answerInternalError(response, error);
  }
}

/** The key from the Authorization header, after "Token" or "Bearer" or without such a word. */
function secretOf(request: IncomingMessage): string {
  return /^(?:(?:Token|Bearer) +)?(\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
}

/** Usually a test's own usage or fault has thrown. A dropped connection would look like a service that does not answer. */
function answerInternalError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(500, { "content-type": "text/plain; charset=utf-8" }).end(`the emulator failed: ${error}\n`);
}

type Outgoing = {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
};

/** The answer's Date header comes from the service's own clock. */
function outgoingOf(answer: Answer, fault: Fault | undefined, { requestId, now }: IncomingRequest): Outgoing {
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

function bodyOf(answer: Answer, fault: Fault | undefined): string {
  if (answer.kind === "text") return answer.text;
  const json = fault?.kind === "body" ? fault.change(answer.json) : answer.json;
  return typeof json === "string" ? json : JSON.stringify(json);
}

/** Sends an answer, whole or broken by a fault. Resolves when there is nothing more to send. */
async function send(
  response: ServerResponse,
  { status, headers = {}, body = "" }: Outgoing,
  fault: Fault | undefined,
  seen: SeenRequest,
): Promise<void> {
  const closed = new Promise<void>((resolve) => response.once("close", resolve));
  // The timer must not outlive the connection.
  const wait = (ms: number) => Promise.race([sleep(ms, undefined, { ref: false }), closed]);
  if (fault?.kind === "delay") await wait(fault.delayMs);
  if (fault?.kind === "hold") await Promise.race([fault.until, closed]);
  if (response.closed) return;

  seen.status = status;
  response.writeHead(status, headers);
  const bytes = Buffer.from(body);
  if (fault?.kind === "stall") {
    response.flushHeaders();
    await closed;
  } else if (fault?.kind === "cut") {
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => response.destroy());
  } else if (fault?.kind === "trickle") {
    for (let sent = 0; sent < bytes.length && !response.closed; sent++) {
      response.write(bytes.subarray(sent, sent + 1));
      await wait(fault.everyMs);
    }
    response.end();
  } else {
    response.end(bytes);
  }
}
