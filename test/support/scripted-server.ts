// A local HTTP server that answers as a test's script says, even with invalid HTTP, and records the requests.

import http from "node:http";
import net from "node:net";

type SeenRequest = {
  /** 1 for the first request. */
  readonly number: number;
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly target: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
};

export type Listening = AsyncDisposable & {
  readonly origin: string;
  readonly port: number;
  /** How many were opened until now. */
  readonly connections: () => number;
};

export type ScriptedServer = Listening & { readonly requests: readonly SeenRequest[] };

/** Called when the request has been read. A response that the script does not end stays open until the server is closed. */
export type Script = (request: SeenRequest, response: http.ServerResponse) => void;

export async function scriptedServer(script: Script): Promise<ScriptedServer> {
  const requests: SeenRequest[] = [];
  const server = http.createServer(async (incoming, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const request = {
      number: requests.length + 1,
      method: incoming.method ?? "",
      target: incoming.url ?? "",
      headers: incoming.headers,
      body: Buffer.concat(chunks).toString(),
    };
    requests.push(request);
    script(request, response);
  });
  return { ...(await listen(server)), requests };
}

/** For answers that no HTTP server would send: the script gets the socket and a running number whenever data arrives. */
export async function rawServer(
  script: (socket: net.Socket, number: number, request: string) => void,
): Promise<Listening> {
  let number = 0;
  return await listen(
    net.createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.on("data", (request) => {
        number++;
        script(socket, number, request.toString("latin1"));
      });
    }),
  );
}

/** Answers every request alike. */
export function answering(status: number, body: string | Uint8Array = "", headers?: http.OutgoingHttpHeaders): Script {
  return (_, response) => answer(response, status, body, headers);
}

export function answeringJson(status: number, body: unknown = {}, headers?: http.OutgoingHttpHeaders): Script {
  return (_, response) => answerJson(response, status, body, headers);
}

export function answerJson(
  response: http.ServerResponse,
  status: number,
  body: unknown,
  headers: http.OutgoingHttpHeaders = {},
): void {
  answer(response, status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

export function answer(
  response: http.ServerResponse,
  status: number,
  body: string | Uint8Array,
  headers: http.OutgoingHttpHeaders = {},
): void {
  response.writeHead(status, headers).end(body);
}

/** Listens on any free port of 127.0.0.1. Disposing of it ends all connections. */
export async function listen(server: net.Server): Promise<Listening> {
  const sockets = new Set<net.Socket>();
  let connections = 0;
  server.on("connection", (socket: net.Socket) => {
    connections++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    port: address.port,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
