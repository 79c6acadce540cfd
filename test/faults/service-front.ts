// A proxy between the programs of a case and the service. It sees every request and every answer as a whole.

import { once } from "node:events";
import http from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "../support/scripted-server.ts";
import type { Action, DecideFault, Side } from "./fault-decision.ts";

export type ServiceFront = AsyncDisposable & { readonly url: string };

export type ServiceFrontOptions = {
  readonly decideFault: DecideFault;
  /** The name of the program that calls, and the URL to request from the service. */
  readonly whoAsks: (request: http.IncomingMessage) => { readonly who: string; readonly url: string };
  /** Called with each request when it arrives. */
  readonly watch: (request: SeenRequest) => Watch;
};

type SeenRequest = {
  readonly who: string;
  readonly method: string;
  readonly url: string;
  readonly body: Buffer;
};

type Watch = {
  /** Called with the service's answer. Returns the answer that the program gets. */
  readonly answered: (answer: Answer) => Answer;
  /** Called when the last byte of that answer was sent. */
  readonly answerSent?: () => void;
  /** Called when the request is over, whether or not its answer was sent. */
  readonly ended?: () => void;
};

export type Answer = { readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: Buffer };

export async function startServiceFront(
  targetUrl: string,
  { decideFault, whoAsks, watch }: ServiceFrontOptions,
): Promise<ServiceFront> {
  const server = http.createServer((request, response) => {
    void exchange(request, response).catch(() => response.destroy());
  });

  async function exchange(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = "" } = request;
    const { who, url } = whoAsks(request);
    const name = `${method} ${url.split("?")[0]}`;
    const decide = async (side: Side): Promise<Action> => {
      const action = decideFault({ who, peer: "service", side, name });
      if (action.kind === "delay") await sleep(action.ms);
      return action;
    };
    const body = await buffer(request);
    const { answered, answerSent, ended } = watch({ who, method, url, body });
    try {
      if (isLost(await decide("out"), response)) return;
      const answer = answered(await forward(new URL(url, targetUrl), request, body));
      const action = await decide("back");
      if (isLost(action, response)) return;
      response.writeHead(answer.status, { ...answer.headers, "content-length": answer.body.length });
      if (action.kind === "cut-halfway") {
        response.write(answer.body.subarray(0, answer.body.length / 2), () => response.destroy());
        return;
      }
      response.end(answer.body, answerSent);
    } finally {
      ended?.();
    }
  }

  const listening = await listen(server);
  return { ...listening, url: listening.origin };
}

/** With "silence" the connection stays open: the program waits until its own time limit. */
function isLost({ kind }: Action, response: http.ServerResponse): boolean {
  if (kind === "cut" || kind === "error") response.destroy();
  return kind === "cut" || kind === "error" || kind === "silence";
}

/** Rejects if the service ends the connection, as the program's own request would. */
async function forward(url: URL, { method, headers }: http.IncomingMessage, body: Buffer): Promise<Answer> {
  const outgoing = http.request(url, { method, headers, agent: false }).end(body);
  const [incoming] = await once(outgoing, "response");
  const { "transfer-encoding": _, ...kept } = incoming.headers;
  return { status: incoming.statusCode, headers: kept, body: await buffer(incoming) };
}
