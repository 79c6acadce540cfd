// Stands between the programs of a case and the service: sees every request and every answer, whole, puts a version into the
// numbers of each breakdown, and keeps the history.

import { once } from "node:events";
import http from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Action, Gate, Side } from "./gate.ts";
import { askedFor, type Exchange, type History, parseBreakdown, rowsByDay, stamped } from "./history.ts";

export type ServiceFront = AsyncDisposable & { readonly url: string };

export type ServiceFrontOptions = {
  readonly gate: Gate;
  readonly history: History;
  /** Who asks, by the key that is sent. */
  readonly whoHas: (secret: string) => string;
};

type Answer = { readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: Buffer };

export async function startServiceFront(
  targetUrl: string,
  { gate, history, whoHas }: ServiceFrontOptions,
): Promise<ServiceFront> {
  const server = http.createServer((request, response) => {
    void exchange(request, response).catch(() => response.destroy());
  });

  async function exchange(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = "", url = "" } = request;
    const who = whoHas(/(\S+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "");
    const seen: Exchange = { who, path: url, asked: askedFor(url), arrivedAt: performance.now() };
    history.exchanges.push(seen);
    const name = `${method} ${url.split("?")[0]}`;
    const decide = async (side: Side): Promise<Action> => {
      const action = gate({ who, peer: "service", side, name });
      if (action.kind === "delay") await sleep(action.ms);
      return action;
    };
    try {
      const body = await buffer(request);
      if (isLost(await decide("out"), response)) return;
      const answer = versioned(await forward(new URL(url, targetUrl), request, body), seen);
      const action = await decide("back");
      if (isLost(action, response)) return;
      response.writeHead(answer.status, { ...answer.headers, "content-length": answer.body.length });
      if (action.kind === "half") {
        response.write(answer.body.subarray(0, answer.body.length / 2), () => response.destroy());
        return;
      }
      response.end(answer.body, () => {
        seen.answeredAt = performance.now();
      });
    } finally {
      seen.endedAt = performance.now();
    }
  }

  function versioned(answer: Answer, seen: Exchange): Answer {
    seen.status = answer.status;
    if (!seen.asked || answer.status !== 200) return answer;
    const version = ++history.newestVersion;
    const breakdown = stamped(parseBreakdown(answer.body.toString()), version);
    seen.version = version;
    seen.days = rowsByDay(breakdown, seen.asked.series.split(" / ")[0] ?? "");
    return { ...answer, body: Buffer.from(JSON.stringify(breakdown)) };
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the front has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** In a hole the program waits for as long as it likes. */
function isLost({ kind }: Action, response: http.ServerResponse): boolean {
  if (kind === "cut" || kind === "error") response.destroy();
  return kind === "cut" || kind === "error" || kind === "hole";
}

/** Rejects where the service ends the connection, as the program's own request would. */
async function forward(url: URL, { method, headers }: http.IncomingMessage, body: Buffer): Promise<Answer> {
  const outgoing = http.request(url, { method, headers, agent: false }).end(body);
  const [incoming] = await once(outgoing, "response");
  const { "transfer-encoding": _, ...kept } = incoming.headers;
  return { status: incoming.statusCode, headers: kept, body: await buffer(incoming) };
}
