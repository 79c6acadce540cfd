// Connections for outgoing calls: direct, or through a company's proxy (proxy.ts).

import { Agent, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import { AppError, systemCode } from "./errors.ts";
import type { HttpProxy } from "./proxy.ts";

/**
 * How long the proxy may take to open a tunnel, its own connection to the service included. Aborting a call does not end the opening of
 * its tunnel; this limit does.
 */
const TUNNEL_MS_MAX = 30_000;

/** The options apply to direct connections and to those inside the tunnels. Certificates are always verified, the proxy's included. */
export function openAgent(options: Agent.Options, proxy: HttpProxy | undefined): Agent | EnvHttpProxyAgent {
  if (!proxy) return new Agent({ ...options, connect: { rejectUnauthorized: true } });
  // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment does not turn verification off.
  const tls = { rejectUnauthorized: true, allowH2: false };
  return new EnvHttpProxyAgent({
    ...options,
    connect: tls,
    httpProxy: "",
    httpsProxy: proxy.address.reveal(),
    noProxy: proxy.noProxy,
    requestTls: tls,
    proxyTls: tls,
    clientFactory: (origin, poolOptions) => tunnelPool(origin, poolOptions, proxy),
  });
}

type Connect = (params: Parameters<Pool["connect"]>[0]) => Promise<Dispatcher.ConnectData>;

/** The connections to the proxy itself. A failure here happens before anything is sent to the service, and the error says so. */
function tunnelPool(origin: URL, options: object, { name }: HttpProxy): Pool {
  const pool = new Pool(origin, { ...options, headersTimeout: TUNNEL_MS_MAX });
  const connect = pool.connect.bind(pool) as Connect;
  const tunnel: Connect = async (params) => {
    const reply = await connect(params).catch((cause: unknown) => {
      throw new AppError("unavailable", `${name} can't be reached (${errnoOf(cause)})`, { details: { sent: "no" } });
    });
    if (reply.statusCode === 200) return reply;
    reply.socket.on("error", () => {}).destroy();
    throw tunnelError(name, reply.statusCode);
  };
  return Object.assign(pool, { connect: tunnel });
}

function tunnelError(name: string, status: number): AppError {
  const details = { sent: "no" };
  if (status === 407) {
    return new AppError("rejected", `${name} needs a user name and password, or refuses the ones it got (407)`, {
      details,
    });
  }
  const isTemporary = status >= 500 || status === 408 || status === 429;
  const what = isTemporary ? "could not make the connection" : "refuses to make the connection";
  return new AppError(isTemporary ? "unavailable" : "rejected", `${name} ${what} (${status})`, { details });
}

function errnoOf(error: unknown): string {
  if (error instanceof AggregateError) return errnoOf(error.errors[0]);
  return systemCode(error) || "unknown reason";
}
