// Servers that speak TLS with a given certificate: a service, and a proxy (door) before a database.

import { once } from "node:events";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { slotOf, soundBody } from "./slots.ts";

export type Identity = Pick<tls.SecureContextOptions, "key" | "cert" | "minVersion" | "maxVersion" | "ciphers">;

export type TlsServer = AsyncDisposable & {
  readonly port: number;
  /** What the client has sent after it accepted the certificate. */
  readonly received: () => string;
};

export async function tlsService(identity: Identity): Promise<TlsServer> {
  let received = "";
  const server = https.createServer(identity, (request, response) => {
    received += `${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}\n`;
    const target = request.url ?? "";
    if (slotOf(target) === undefined) response.writeHead(404).end();
    else response.writeHead(200, { "content-type": "application/json" }).end(soundBody(target, 1));
  });
  server.on("tlsClientError", () => {});
  return { ...(await listening(server)), received: () => received };
}

/** Agrees to TLS as Postgres does, and passes on what follows to the server at that address. */
export async function tlsDatabase(identity: Identity, databaseUrl: string): Promise<TlsServer> {
  const { hostname, port } = new URL(databaseUrl);
  let received = "";
  const server = net.createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", () => {
      socket.write("S");
      const secure = new tls.TLSSocket(socket, { isServer: true, secureContext: tls.createSecureContext(identity) });
      secure.on("error", () => socket.destroy());
      const upstream = net.connect(Number(port), hostname);
      upstream.on("error", () => socket.destroy());
      secure.on("data", (bytes) => {
        received += bytes.toString("latin1");
        upstream.write(bytes);
      });
      upstream.on("data", (bytes) => secure.write(bytes));
      secure.on("close", () => upstream.destroy());
      upstream.on("close", () => secure.destroy());
    });
  });
  return { ...(await listening(server)), received: () => received };
}

async function listening(server: net.Server): Promise<AsyncDisposable & { readonly port: number }> {
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
