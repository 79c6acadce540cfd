// Sends an answer, whole or broken as a fault wants it.

import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "./answer.ts";
import type { Fault } from "./faults.ts";

export type Outgoing = {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Uint8Array;
};

/** The answer's Date header comes from the service's own clock. */
export function outgoing(answer: Answer, fault: Fault | undefined, requestId: string, now: Date): Outgoing {
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
export async function send(
  response: ServerResponse,
  { status, headers, body }: Outgoing,
  fault: Fault | undefined,
  onHead: (status: number) => void,
): Promise<void> {
  const gone = whenGone(response);
  if (fault?.kind === "delay") await sleep(fault.delayMs, undefined, { signal: gone }).catch(() => undefined);
  if (fault?.kind === "hold") await Promise.race([fault.until, aborted(gone)]);
  if (gone.aborted) return;

  onHead(status);
  response.writeHead(status, headers);
  const bytes = Buffer.from(body);
  if (fault?.kind === "stall") {
    response.flushHeaders();
    await aborted(gone);
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

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
