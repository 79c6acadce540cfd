// Who may have a connection of the monitor, so that a health check always gets one: what is asked by others, whole or not,
// never stands in its way.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Connections without a request under way: they send one, or are kept for another. */
const WAITING_MAX = 200;
/** Pages that are made or sent. Health checks are not counted: their answers are ready, and small. */
const PAGES_MAX = 50;

export type Connections = {
  /** Called with every request; `page` is false for a health check. Whether it may be answered with what it asks for. */
  readonly begin: (request: IncomingMessage, response: ServerResponse, page: boolean) => boolean;
};

/**
 * A connection too many ends the one that waited longest. A limit that refused the new one instead would, once it is reached by
 * half-sent requests, refuse health checks.
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
