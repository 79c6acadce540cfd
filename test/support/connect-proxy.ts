// A company's proxy: it opens tunnels (CONNECT) for clients with the right credentials, and records everything that it can see.

import http from "node:http";
import net from "node:net";
import tls from "node:tls";
import { authority, certificate } from "./certificates.ts";
import { type Listening, listen } from "./scripted-server.ts";

/** Signs the certificate of the tests' services. A client must be told to trust it. */
export const AUTHORITY = authority("the authority of the test");

export type ProxyOptions = {
  /** `user:password`, which the proxy requires for a tunnel. */
  readonly credentials?: string;
  /** The status with which every tunnel is refused. */
  readonly refuse?: () => number;
  /** Every tunnel leads to this port, whatever the client requested, as in a proxy that intercepts TLS. */
  readonly tunnelPort?: number;
};

export async function connectProxy(options: ProxyOptions = {}) {
  /** The host and port of each requested tunnel. */
  const tunnels: string[] = [];
  /** All requests other than CONNECT. The proxy could read them. */
  const requests: string[] = [];
  /** All that the proxy received: the CONNECT requests with their headers, and the bytes that clients sent into the tunnels. */
  let seen = "";
  const server = http.createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`);
    response.writeHead(500).end();
  });
  server.on("connect", (request, client: net.Socket, head) => {
    client.on("error", () => client.destroy());
    const target = request.url ?? "";
    tunnels.push(target);
    seen += `${request.method} ${target} ${JSON.stringify(request.rawHeaders)}\n`;
    const given = request.headers["proxy-authorization"];
    const expected = options.credentials && `Basic ${Buffer.from(options.credentials).toString("base64")}`;
    if (options.refuse) return client.end(`HTTP/1.1 ${options.refuse()} No\r\ncontent-length: 0\r\n\r\n`);
    if (given !== expected) {
      client.end("HTTP/1.1 407 Who\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const { port } = new URL(`http://${target}`);
    const upstream = net.connect(options.tunnelPort ?? Number(port), "127.0.0.1");
    upstream.on("error", () => client.destroy());
    upstream.on("connect", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.write(head);
      client.on("data", (bytes: Buffer) => {
        seen += bytes.toString("latin1");
        upstream.write(bytes);
      });
      upstream.pipe(client);
      client.on("close", () => upstream.destroy());
    });
  });
  return { ...(await listen(server)), tunnels, requests, seen: () => seen };
}

/** Serves the server at `origin` over TLS, with a certificate of AUTHORITY unless another is given. */
export async function tlsFront(
  origin: string,
  identity: Pick<tls.SecureContextOptions, "key" | "cert"> = certificate(AUTHORITY),
): Promise<Listening> {
  const { port } = new URL(origin);
  const server = tls.createServer(identity, (socket) => {
    const upstream = net.connect(Number(port), "127.0.0.1");
    for (const one of [socket, upstream]) one.on("error", () => one.destroy());
    socket.pipe(upstream).pipe(socket);
    socket.on("close", () => upstream.destroy());
  });
  server.on("tlsClientError", () => {});
  return await listen(server);
}
