// A TCP proxy in front of a server. It damages the answers: it cuts them after some bytes, sends them in small pieces or slowly, or
// resets the connection when the client writes again.

import { once } from "node:events";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type Passage = {
  /** Only this many bytes of the server's answers on this connection pass. */
  readonly cutAfterBytes?: number;
  /** How a cut looks to the client: an end in order, or a reset. */
  readonly cutBy?: "end" | "reset";
  readonly pieceBytes?: number;
  readonly everyMs?: number;
  /** The connection is reset when the client writes for the nth time, before it is passed on. */
  readonly resetAtWrite?: number;
};

export type TcpFront = AsyncDisposable & {
  readonly origin: string;
  /** What was done to the connection that the server knows by this port of its client. */
  readonly passageOf: (port: number) => Passage | undefined;
};

/** `next` is called once for each connection, in order. */
export async function tcpFront(targetOrigin: string, next: (connection: number) => Passage): Promise<TcpFront> {
  const target = new URL(targetOrigin);
  const sockets = new Set<net.Socket>();
  const passages = new Map<number, Passage>();
  let connections = 0;
  const keep = (socket: net.Socket): net.Socket => {
    sockets.add(socket.setNoDelay());
    return socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
  };

  const server = net.createServer(async (accepted) => {
    const client = keep(accepted);
    const passage = next(connections++);
    client.pause();
    const upstream = keep(net.connect(Number(target.port), target.hostname));
    client.on("close", () => upstream.destroy());
    await once(upstream, "connect").catch(() => client.destroy());
    if (upstream.localPort !== undefined) passages.set(upstream.localPort, passage);
    pass(client, upstream, passage);
    void passBack(upstream, client, passage);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the front has no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    passageOf: (port) => passages.get(port),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function pass(client: net.Socket, upstream: net.Socket, { resetAtWrite }: Passage): void {
  let writes = 0;
  client.on("data", (bytes) => {
    if (++writes === resetAtWrite) client.resetAndDestroy();
    else upstream.write(bytes);
  });
  client.on("end", () => upstream.end());
  client.resume();
}

async function passBack(upstream: net.Socket, client: net.Socket, passage: Passage): Promise<void> {
  const { cutAfterBytes = Number.POSITIVE_INFINITY, cutBy = "end", everyMs } = passage;
  let passed = 0;
  try {
    for await (const chunk of upstream) {
      const bytes = chunk.subarray(0, cutAfterBytes - passed);
      const pieceBytes = passage.pieceBytes ?? bytes.length;
      for (let from = 0; from < bytes.length; from += pieceBytes) {
        client.write(bytes.subarray(from, from + pieceBytes));
        if (everyMs !== undefined) await sleep(everyMs);
      }
      passed += bytes.length;
      if (passed >= cutAfterBytes) break;
    }
  } catch {
    // If the client closes its connection, `upstream` is destroyed, and reading from it fails.
  }
  if (passed >= cutAfterBytes && cutBy === "reset") client.resetAndDestroy();
  else client.end();
  upstream.destroy();
}
