// Answers health checks and scrapes over HTTP. It has to answer when nothing else works, so it waits for nobody: every
// request is on its own, and none may take long.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Logger } from "pino";
import { AppError, errorText } from "../errors.ts";
import { type MonitorAddress, monitorUrl } from "./address.ts";
import { type MonitorDeps, type Page, type Routes, routesOf, textPage } from "./routes.ts";

export type Monitor = AsyncDisposable & {
  /** Without a slash at its end. */
  readonly url: string;
};

export type ServerDeps = {
  readonly log: Logger;
  /** Hides secrets in use from every page: the reason of a failure may quote one. */
  readonly scrub: (text: string) => string;
};

/** Longer than a page takes, and shorter than a prober waits. */
const SILENT_MS_MAX = 10_000;
const REQUEST_MS_MAX = 5_000;
const CHECK_MS = 1_000;
const CONNECTIONS_MAX = 100;
/** What answers are under way when it closes have this long. */
const CLOSE_MS_MAX = 500;

/** Throws `config` where it can't listen there. */
export async function openMonitor(address: MonitorAddress, deps: MonitorDeps & ServerDeps): Promise<Monitor> {
  const routes = routesOf(deps);
  const server = createServer({
    headersTimeout: REQUEST_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    connectionsCheckingInterval: CHECK_MS,
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.timeout = SILENT_MS_MAX;
  server.on("request", (request, response) => {
    void pageOf(routes, request, deps.log).then((page) =>
      send(response, { ...page, body: deps.scrub(page.body) }, server.listening),
    );
  });
  await listen(server, address);
  // Such as too many open files: no reason to end the process.
  server.on("error", (error) => deps.log.warn({ reason: errorText(error) }, "monitor connection lost"));
  return {
    url: monitorUrl({ host: address.host, port: portOf(server) }),
    [Symbol.asyncDispose]: () => close(server),
  };
}

async function listen(server: Server, { host, port }: MonitorAddress): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new AppError("config", listenFault(host, port, cause), { cause });
  }
}

function listenFault(host: string, port: number, cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "EADDRINUSE")
    return `monitor.port: expected a free port; ${port} at ${host} is in use, perhaps by another worker: choose another`;
  if (code === "EACCES")
    return `monitor.port: this user may not listen on ${port} at ${host}: choose one of 1024 or more`;
  return `monitor.host: expected an address of this machine; can't listen on port ${port} at ${host}`;
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error(`expected a TCP address, got ${address}`);
  return address.port;
}

async function pageOf(routes: Routes, { method, url }: IncomingMessage, log: Logger): Promise<Page> {
  const path = /^[^?]*/.exec(url ?? "")?.[0] ?? "";
  const route = routes[path];
  if (route === undefined) return textPage(404, ["there is nothing here; there is:", ...Object.keys(routes)]);
  if (method !== "GET" && method !== "HEAD") return textPage(405, ["expected GET or HEAD"]);
  try {
    return await route();
  } catch (error) {
    log.error({ path, reason: errorText(error) }, "monitor page failed");
    return textPage(500, ["this page could not be made; the log says why"]);
  }
}

function send(response: ServerResponse, { status, contentType, body }: Page, stays: boolean): void {
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(status === 405 && { allow: "GET, HEAD" }),
    ...(!stays && { connection: "close" }),
  });
  response.end(body);
}

async function close(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS_MAX);
  await closed;
  clearTimeout(timer);
}
