// Stands between the program and Postgres, and sees each statement as a whole before the server does, and all of what it
// is answered before the program does.

import { once } from "node:events";
import net from "node:net";
import type { Gate } from "./rotation-http-proxy.ts";

export type PostgresProxy = AsyncDisposable & { readonly url: string };

/** The same database, through the proxy. */
export async function startPostgresProxy(databaseUrl: string, gate: Gate): Promise<PostgresProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ noDelay: true }, (client) => {
    const upstream = net.connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", end).on("close", () => {
        sockets.delete(socket);
        end();
      });
    }
    client.on(
      "data",
      statements((bytes) => upstream.write(bytes), gate, end),
    );
    upstream.on(
      "data",
      answers((bytes) => client.write(bytes), gate, end),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${address.port}`;
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

type Forward = (bytes: Buffer) => void;
type Message = { readonly type: string; readonly bytes: Buffer };

/** A query, or all that belongs to one statement of the extended protocol, goes on at once or not at all. */
function statements(forward: Forward, gate: Gate, end: () => void): (chunk: Buffer) => void {
  let held: Message[] = [];
  return messages(true, (message) => {
    held.push(message);
    // Until Sync the server may already do what it has been told.
    if (["P", "B", "D", "E", "C", "H"].includes(message.type)) return;
    const isStatement = message.type === "Q" || message.type === "S";
    if (isStatement && !gate(`${textOf(held)} goes out`)) return end();
    forward(Buffer.concat(held.map(({ bytes }) => bytes)));
    held = [];
  });
}

/** Once the connection is open, what belongs to one statement comes at once or not at all. */
function answers(forward: Forward, gate: Gate, end: () => void): (chunk: Buffer) => void {
  let isOpen = false;
  let held: Buffer[] = [];
  return messages(false, ({ type, bytes }) => {
    held.push(bytes);
    if (isOpen && type !== "Z") return;
    if (isOpen && !gate("a statement was answered")) return end();
    if (type === "Z") isOpen = true;
    forward(Buffer.concat(held));
    held = [];
  });
}

/** Cuts the stream into messages. The first one of a client has no type. */
function messages(isClient: boolean, each: (message: Message) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let hasType = !isClient;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const at = hasType ? 1 : 0;
      if (rest.length < at + 4) return;
      const length = at + rest.readInt32BE(at);
      if (rest.length < length) return;
      const bytes = rest.subarray(0, length);
      rest = rest.subarray(length);
      each({ type: hasType ? String.fromCharCode(bytes[0] ?? 0) : "startup", bytes });
      hasType = true;
    }
  };
}

/** The words of a statement, for the name of an event. */
function textOf(held: readonly Message[]): string {
  const bytes = held.find(({ type }) => type === "Q" || type === "P")?.bytes ?? Buffer.alloc(0);
  return bytes
    .toString("latin1", 5)
    .replaceAll(/[\0\s]+/g, " ")
    .trim()
    .slice(0, 60);
}
