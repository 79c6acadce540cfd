// Limits the monitor's connections so that a health check always gets one: other requests, complete or not, never block it.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Limit for connections without a request in progress: the client is still sending one, or keeps the connection open. */
const WAITING_MAX = 200;
/** Limit for pages being built or sent. Health checks do not count, because their answers are ready and small. */
const PAGES_MAX = 50;

export type Connections = {
  /** Called for every request; `page` is false for a health check. Returns whether the request may be answered. */
  readonly begin: (request: IncomingMessage, response: ServerResponse, page: boolean) => boolean;
};

/**
 * One connection too many closes the one that has waited longest. If the new connection were refused instead, half-sent requests
 * could fill the limit and block health checks.
 */
export function limitConnections(server: Server): Connections {
  const waiting = new Set<Socket>();
  let pages = 0;
  const wait = (socket: Socket) => {
    waiting.add(socket);
    if (waiting.size <= WAITING_MAX) return;
    const [longest] = waiting;
    longest?.destroy();
    if (longest) waiting.delete(longest);
  };
  server.on("connection", (socket: Socket) => {
    wait(socket);
    socket.once("close", () => waiting.delete(socket));
  });
  return {
    begin({ socket }, response, page) {
      const isAllowed = !page || pages < PAGES_MAX;
      const counts = page && isAllowed;
      if (counts) pages++;
      waiting.delete(socket);
      response.once("close", () => {
        if (counts) pages--;
        if (!socket.destroyed) wait(socket);
      });
      return isAllowed;
    },
  };
}
