// The HTTP server of a worker, the monitor. Health checks must be answered when nothing else works, so they need only this process.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { memoizeAsync } from "../async.ts";
import { AppError, errorText, systemCode } from "../errors.ts";
import { isLoopbackAddress, type MonitorAddress, monitorUrl } from "./access.ts";
import type { MonitorDeps } from "./routes.ts";

/** The URL has no slash at its end. */
export type Monitor = AsyncDisposable & { readonly url: string };

/** Longer than a slow machine needs to make a page, because the connection is silent until the page is made. */
const SOCKET_IDLE_MS_MAX = 30_000;
/** How long the headers and the body together may take to arrive: clients send both at once. */
const REQUEST_MS_MAX = 3_000;
const CONNECTION_CHECK_MS = 1_000;
/** When the monitor closes, answers in progress have this long to end. */
const CLOSE_MS_MAX = 500;

/** Throws `config` if it can't listen at the address. */
export async function openMonitor(address: MonitorAddress, deps: MonitorDeps): Promise<Monitor> {
  const server = createServer({
    headersTimeout: REQUEST_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    connectionsCheckingInterval: CONNECTION_CHECK_MS,
  });
  server.timeout = SOCKET_IDLE_MS_MAX;
  await listen(server, address);
  // The address that the host name was resolved to shows whether other machines can reach the monitor.
  const bound = server.address() as AddressInfo;
  // The first request loads the routes: Hono takes 40 ms, which a worker's start need not wait for.
  const load = async () => (await import("./routes.ts")).requestListener(deps, isLoopbackAddress(bound.address));
  const loadOnce = memoizeAsync<Awaited<ReturnType<typeof load>>>();
  server.on("request", async (request, response) => {
    try {
      const listener = await loadOnce("routes", load);
      await listener(request, response);
    } catch (error) {
      // The file of the routes may be gone, for example while the program is upgraded in place. An error that is not caught ends the worker.
      deps.log.error({ reason: errorText(error) }, "the monitor can't answer");
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    }
  });
  // An error such as too many open files must not end the process.
  server.on("error", (error) => deps.log.warn({ reason: errorText(error) }, "the monitor can't accept a connection"));
  return {
    url: monitorUrl({ host: address.host, port: bound.port }),
    async [Symbol.asyncDispose]() {
      const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS_MAX);
      await once(server.close(), "close");
      clearTimeout(timer);
    },
  };
}

async function listen(server: Server, { host, port }: MonitorAddress): Promise<void> {
  server.listen({ host, port });
  await once(server, "listening").catch((cause: unknown) => {
    throw new AppError("config", listenProblem(host, port, cause), { cause });
  });
}

function listenProblem(host: string, port: number, cause: unknown): string {
  const code = systemCode(cause);
  if (code === "EADDRINUSE")
    return `monitor.port: expected a free port; ${port} at ${host} is in use, perhaps by another worker: choose another, or 0 for any free one`;
  if (code === "EACCES")
    return `monitor.port: this user may not listen on ${port} at ${host}: choose one of 1024 or more`;
  return `monitor.host: expected an address of this machine; can't listen on port ${port} at ${host}`;
}
