// A TCP proxy in front of the database server, with which a test simulates a broken network.

import net from "node:net";
import { listen } from "../support/scripted-server.ts";

export type TcpProxy = AsyncDisposable & {
  /** The same database, reached through the proxy. */
  readonly url: string;
  /** Ends every connection and refuses new ones. */
  readonly cut: () => void;
  /** Accepts connections and data but passes nothing on, as a network that drops packets. */
  readonly silence: () => void;
  /** Accepts connections again after `cut`. */
  readonly restore: () => void;
  /** How many connections were refused. */
  readonly refused: () => number;
};

export async function tcpProxy(databaseUrl: string): Promise<TcpProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<net.Socket>();
  let whole = true;
  let refused = 0;
  let swallows = false;
  const keep = (socket: net.Socket): net.Socket => {
    sockets.add(socket);
    return socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
  };
  const server = net.createServer((client) => {
    if (!whole) {
      refused++;
      return void client.destroy();
    }
    if (swallows) return void keep(client).pause();
    const upstream = keep(net.connect(Number(target.port), target.hostname));
    keep(client)
      .on("close", () => upstream.destroy())
      .pipe(upstream);
    upstream.on("close", () => client.destroy());
    upstream.pipe(client);
  });
  const listening = await listen(server);
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${listening.port}`;
  const cut = () => {
    whole = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    cut,
    silence: () => {
      swallows = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    restore: () => {
      whole = true;
    },
    refused: () => refused,
    async [Symbol.asyncDispose]() {
      cut();
      await listening[Symbol.asyncDispose]();
    },
  };
}
