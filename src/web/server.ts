// Answers health checks, scrapes and the dashboard over HTTP. It must answer when nothing else works, so requests do not wait for
// each other, and none may take long. No request changes anything.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Logger } from "pino";
import { AppError, errorText, systemCode } from "../errors.ts";
import { type Access, type Audience, type Gate, isLoopbackAddress, openGate } from "./access.ts";
import { encodePage, isCompressible } from "./encoding.ts";
import { type Page, textPage } from "./page.ts";
import { type MonitorAddress, type MonitorDeps, monitorUrl, type Route, type Routes, routesOf } from "./routes.ts";

export type Monitor = AsyncDisposable & {
  /** Without a slash at its end. */
  readonly url: string;
};

export type ServerDeps = {
  readonly log: Logger;
  /** Hides secrets in use from every page: the reason of a failure may quote one. */
  readonly scrub: (text: string) => string;
  /** What visitors must send now; undefined if nothing. */
  readonly access: () => Access | undefined;
};

/** Longer than a page takes, and shorter than a prober waits. */
const SOCKET_IDLE_MS_MAX = 10_000;
/** Limit for the headers and the body together; a health check sends both at once. */
const REQUEST_MS_MAX = 3_000;
const CONNECTION_CHECK_MS = 1_000;
/** A client that reads a page more slowly than this is cut off: it counts among the pages in progress, whose number is limited. */
const SEND_MS_MAX = 30_000;
/** The Retry-After of an answer that is refused because too many pages are being made. */
const BUSY_SECONDS = 5;
/** When the monitor closes, answers in progress have this long to end. */
const CLOSE_MS_MAX = 500;

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** Throws `config` if it can't listen at the address. */
export async function openMonitor(
  address: MonitorAddress,
  deps: MonitorDeps & ServerDeps,
  sendMsMax: number = SEND_MS_MAX,
): Promise<Monitor> {
  const routes = routesOf(deps);
  const server = createServer({
    headersTimeout: REQUEST_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    connectionsCheckingInterval: CONNECTION_CHECK_MS,
  });
  const admit = limitConnections(server);
  server.timeout = SOCKET_IDLE_MS_MAX;
  await listen(server, address);
  const bound = boundAddress(server);
  const isLoopback = isLoopbackAddress(bound.address);
  const gate: Gate = (...visitor) => openGate(deps.access(), isLoopback)(...visitor);
  server.on("request", (request, response) => {
    const [, path = "", query = ""] = /^([^?]*)\??(.*)$/s.exec(request.url ?? "") ?? [];
    const route = routes[path] ?? { audience: "machines", answer: () => notFoundPage(routes) };
    const isAdmitted = admit(request, response, route.audience);
    // The body of a request is not read. On a connection that stays open it would be taken for the next request, so the connection
    // is closed.
    const keepsOpen = () => server.listening && isAdmitted && !hasBody(request);
    const answer = async () => {
      try {
        return await pageOf(route, gate, request, query);
      } catch (error) {
        deps.log.error({ path, reason: errorText(error) }, "monitor page failed");
        return textPage(500, ["this page could not be made; the log says why"]);
      }
    };
    const page = isAdmitted ? answer() : Promise.resolve(BUSY);
    void page.then((one) => send(request, response, one, deps.scrub, keepsOpen, sendMsMax));
  });
  // An error such as too many open files must not end the process.
  server.on("error", (error) => deps.log.warn({ reason: errorText(error) }, "monitor connection lost"));
  return {
    url: monitorUrl({ host: address.host, port: bound.port }),
    [Symbol.asyncDispose]: () => close(server),
  };
}

async function listen(server: Server, { host, port }: MonitorAddress): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new AppError("config", listenProblem(host, port, cause), { cause });
  }
}

function listenProblem(host: string, port: number, cause: unknown): string {
  const code = systemCode(cause);
  if (code === "EADDRINUSE")
    return `monitor.port: expected a free port; ${port} at ${host} is in use, perhaps by another worker: choose another, or 0 for any free one`;
  if (code === "EACCES")
    return `monitor.port: this user may not listen on ${port} at ${host}: choose one of 1024 or more`;
  return `monitor.host: expected an address of this machine; can't listen on port ${port} at ${host}`;
}

/** The address that the host name was resolved to, which shows whether other machines can reach the monitor. */
function boundAddress(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error(`expected a TCP address, got ${address}`);
  return address;
}

const BUSY: Page = {
  ...textPage(503, ["too many pages are being made at this moment: try again"]),
  headers: { "retry-after": String(BUSY_SECONDS) },
};

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function pageOf(route: Route, gate: Gate, { method, headers }: IncomingMessage, query: string): Page | Promise<Page> {
  if (method !== "GET" && method !== "HEAD") {
    return { ...textPage(405, ["expected GET or HEAD"]), headers: { allow: "GET, HEAD" } };
  }
  const parameters = new URLSearchParams(query);
  // Postgres refuses such a text.
  const hasNul = [...parameters].some(([name, value]) => `${name}${value}`.includes("\0"));
  const refusal = hasNul ? textPage(400, ["a parameter holds the character NUL, which is in no name"]) : undefined;
  return gate(route.audience, headers) ?? refusal ?? route.answer(parameters);
}

function notFoundPage(routes: Routes): Page {
  const pages = Object.keys(routes).filter((path) => !path.startsWith("/assets/"));
  return textPage(404, ["there is no such page; there are:", ...pages]);
}

async function send(
  { headers: asked }: IncomingMessage,
  response: ServerResponse,
  page: Page,
  scrub: (text: string) => string,
  keepsOpen: () => boolean,
  msMax: number,
): Promise<void> {
  const encoded = encodePage(page, scrub);
  const isKnown = encoded.etag !== undefined && asked["if-none-match"] === encoded.etag;
  const isCompressed = !isKnown && isCompressible(encoded, asked["accept-encoding"]);
  const body = isCompressed ? await encoded.compressed() : encoded.plain;
  response.writeHead(isKnown ? 304 : page.status, {
    ...HEADERS,
    ...(encoded.etag !== undefined && { etag: encoded.etag }),
    ...(isKnown
      ? { "x-as-of": page.asOf?.[0] ?? "" }
      : { "content-type": page.contentType, "content-length": body.length, vary: "accept-encoding" }),
    ...(isCompressed && { "content-encoding": "gzip" }),
    ...page.headers,
    ...(!keepsOpen() && { connection: "close" }),
  });
  response.end(isKnown ? undefined : body);
  const timer = setTimeout(() => response.destroy(), msMax);
  response.once("close", () => clearTimeout(timer));
}

async function close(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS_MAX);
  await closed;
  clearTimeout(timer);
}

// Limits the monitor's connections so that a health check always gets one: other requests, complete or not, never block it.

/** Limit for connections without a request in progress: the client is still sending one, or keeps the connection open. */
const IDLE_CONNECTIONS_MAX = 500;
/**
 * Limits for pages being built or sent. Health checks have none, because their answers are ready and small. People who want the same page
 * wait for one reading of it, and are sent the same bytes, so that each of them takes some kilobytes; each scrape is a reading of its own.
 */
const PAGES_IN_PROGRESS_MAX: Readonly<Record<Audience, number>> = {
  anyone: Number.POSITIVE_INFINITY,
  machines: 50,
  people: 400,
};

/** Called for every request. Returns whether it may be answered. */
type Admit = (request: IncomingMessage, response: ServerResponse, audience: Audience) => boolean;

/**
 * If there are too many connections without a request in progress, the one that has been idle longest is closed. If the new connection
 * were refused instead, half-sent requests could fill the limit and block health checks.
 */
function limitConnections(server: Server): Admit {
  const idle = new Set<Socket>();
  const inProgress: Record<Audience, number> = { anyone: 0, machines: 0, people: 0 };
  const addIdle = (socket: Socket) => {
    idle.add(socket);
    if (idle.size <= IDLE_CONNECTIONS_MAX) return;
    const [oldest] = idle;
    oldest?.destroy();
    if (oldest) idle.delete(oldest);
  };
  server.on("connection", (socket: Socket) => {
    addIdle(socket);
    socket.once("close", () => idle.delete(socket));
  });
  return ({ socket }, response, audience) => {
    const isAdmitted = inProgress[audience] < PAGES_IN_PROGRESS_MAX[audience];
    if (isAdmitted) inProgress[audience]++;
    idle.delete(socket);
    response.once("close", () => {
      if (isAdmitted) inProgress[audience]--;
      if (!socket.destroyed) addIdle(socket);
    });
    return isAdmitted;
  };
}
