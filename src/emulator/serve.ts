// Serves one request: log, fault, answer.

import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Fault, FaultPlan, SeenRequest } from "./faults.ts";
import { type Asked, answerTo, type Service } from "./routes.ts";
import { outgoing, send } from "./send.ts";

/** Only there to make a path a URL. */
const BASE = "http://emulator.test";

export type LoggedRequest = { -readonly [Member in keyof SeenRequest]: SeenRequest[Member] };

/** What a test may change between two requests. */
type Controls = { readonly fault: FaultPlan | undefined; readonly now: () => Date };

type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly controls: Controls;
  readonly service: Service;
  readonly log: LoggedRequest[];
};

export async function serve(exchange: Exchange): Promise<void> {
  const { request, response, controls, service, log } = exchange;
  const now = controls.now();
  const caller = service.keys.find(secretOf(request), now);
  const { method = "", url: path = "" } = request;
  const seen: LoggedRequest = { method, path, keyId: caller?.apiKeyId, status: undefined, receivedAt: new Date() };
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
    failOpenly(response, error);
  }
}

async function respond(
  response: ServerResponse,
  asked: Asked,
  fault: Fault | undefined,
  service: Service,
  onHead: (status: number) => void,
): Promise<void> {
  if (fault?.kind === "drop") return void response.destroy();
  if (fault?.kind === "answer") {
    const { status, headers = {}, body = "" } = fault;
    return send(response, { status, headers, body }, fault, onHead);
  }
  const answer = answerTo(asked, service);
  if (fault?.kind === "lose") return void response.destroy();
  return send(response, outgoing(answer, fault, asked.requestId, asked.now), fault, onHead);
}

/** Scheme and key, or the bare key. */
function secretOf(request: IncomingMessage): string {
  return /^(?:(?:Token|Bearer) +)?(\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
}

/** A mistake in a test's own usage or fault, mostly: it must not look like a service that does not answer. */
function failOpenly(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(500, { "content-type": "text/plain; charset=utf-8" }).end(`the emulator failed: ${error}\n`);
}
