// The emulator of the speech service: a server on 127.0.0.1 for the demo, trials and tests. It shares lists of names with the program, but no
// arithmetic: tests compare the results of both, and would not find a mistake that both make.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { addDays, dayOf } from "./days.ts";
import { type ConsoleKey, KeyStore } from "./keys.ts";
import { answerTo, type Emulated, type EmulatorAnswer, type IncomingRequest } from "./routes.ts";
import { madeUpUsage } from "./usage.ts";

export type EmulatorSettings = Partial<Omit<Emulated, "keys">> & {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** The only keys at the start. Their projects are the only projects, unless `projects` names others. */
  readonly consoleKeys: readonly ConsoleKey[];
  readonly now?: () => Date;
  /** Answers a request in place of the emulator. */
  readonly handle?: Handle;
};

type Handle = (incoming: IncomingRequest, response: ServerResponse, service: Emulated) => Promise<void>;
export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

export async function startEmulator(options: EmulatorSettings) {
  const { port = 0, consoleKeys, now = () => new Date(), handle = answer, ...settings } = options;
  const ids = new Set(consoleKeys.map(({ projectId }) => projectId));
  const service: Emulated = {
    dialect: "interface",
    firstPaidDay: addDays(dayOf(now()), -30),
    usage: madeUpUsage(1),
    projects: () => [...ids].map((id) => ({ id, name: id })),
    ...settings,
    keys: new KeyStore(consoleKeys, now()),
  };
  const server = createServer();
  server.listen(port, "127.0.0.1");
  await once(server, "listening");

  const inProgress = new Set<Promise<void>>();
  const emulator = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keys: service.keys,
    /** Tests and the demo replace this clock. */
    now,
    /** Ends open connections, and with them the answers in progress. */
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
      await Promise.all(inProgress);
    },
  };
  server.on("request", (request, response) => {
    const served = serve(request, response, service, emulator.now(), handle);
    inProgress.add(served);
    void served.finally(() => inProgress.delete(served));
  });
  return emulator;
}

/** A URL needs a host; this one is never called. */
const BASE = "http://emulator.test";

async function serve(request: IncomingMessage, response: ServerResponse, service: Emulated, now: Date, handle: Handle) {
  const { method = "", url: rawUrl = "", headers } = request;
  try {
    const url = URL.parse(rawUrl, BASE) ?? new URL(BASE);
    const secret = /^(?:(?:Token|Bearer) +)?(\S+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
    const caller = service.keys.find(secret, now);
    const contentType = headers["content-type"] ?? "";
    const body = await text(request);
    await handle({ method, rawUrl, url, caller, contentType, body, now, requestId: randomUUID() }, response, service);
  } catch (error) {
    // Answers 500 unless the answer has begun: a dropped connection would look like a service that does not answer.
    if (response.headersSent) response.destroy();
    else response.writeHead(500, { "content-type": "text/plain" }).end(`the emulator failed: ${error}\n`);
  }
}

async function answer(incoming: IncomingRequest, response: ServerResponse, service: Emulated): Promise<void> {
  const { status, headers, body } = outgoingOf(answerTo(incoming, service), incoming);
  response.writeHead(status, headers).end(body);
}

/** The answer's Date header comes from the service's own clock. */
export function outgoingOf(answer: EmulatorAnswer, { requestId, now }: IncomingRequest) {
  const { status } = answer;
  const idOfError = status >= 400 && { request_id: requestId };
  const body = "text" in answer ? answer.text : JSON.stringify({ ...answer.json, ...idOfError });
  const headers: OutgoingHttpHeaders = {
    "content-type": "text" in answer ? "text/plain; charset=utf-8" : "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "dg-request-id": requestId,
    date: now.toUTCString(),
  };
  return { status, headers, body };
}
