// Stands between the program and the service: sees every request and every answer, whole, and what a create gave away.

import { once } from "node:events";
import http from "node:http";
import { buffer } from "node:stream/consumers";
import { z } from "zod";

/** Called before a request goes to the service, and before its answer goes to the program; false lets it go nowhere. */
export type Gate = (event: string) => boolean;

export type HttpProxy = AsyncDisposable & {
  readonly url: string;
  /** The bodies of the creates the program sent, whether they reached the service or not. */
  readonly creates: readonly CreateBody[];
  /** The secrets of the keys the service made. */
  readonly secrets: readonly string[];
};

const CreateBody = z.looseObject({ comment: z.string() });
export type CreateBody = z.infer<typeof CreateBody>;

export async function startHttpProxy(targetUrl: string, gate: Gate): Promise<HttpProxy> {
  const creates: CreateBody[] = [];
  const secrets: string[] = [];
  const server = http.createServer((request, response) => {
    void exchange(request, response).catch(() => response.destroy());
  });

  async function exchange(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = "", url = "" } = request;
    const body = await buffer(request);
    if (method === "POST") creates.push(CreateBody.parse(JSON.parse(body.toString())));
    if (!gate(`${method} ${url.split("?")[0]} goes out`)) return void response.destroy();
    const answer = await forward(new URL(url, targetUrl), request, body);
    if (method === "POST") secrets.push(...secretsIn(answer.body));
    if (!gate(`${method} ${url.split("?")[0]} was answered`)) return void response.destroy();
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    creates,
    secrets,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type Answer = { readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: Buffer };

/** Rejects where the service ends the connection, as the program's own request would. */
async function forward(url: URL, { method, headers }: http.IncomingMessage, body: Buffer): Promise<Answer> {
  const outgoing = http.request(url, { method, headers, agent: false }).end(body);
  const answered = once(outgoing, "response");
  const [incoming] = await answered;
  return { status: incoming.statusCode, headers: incoming.headers, body: await buffer(incoming) };
}

function secretsIn(body: Buffer): string[] {
  return [...body.toString().matchAll(/"key":"([^"]+)"/g)].flatMap(([, secret]) => secret ?? []);
}
