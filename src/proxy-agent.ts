// Connections for outgoing calls: direct, or in tunnels through a company's proxy (proxy.ts).

import { Agent, EnvHttpProxyAgent, Pool } from "undici";
import type { HttpProxy } from "./proxy.ts";

/** How long the proxy may take to open a tunnel. Aborting a call does not end that; this limit does. */
const TUNNEL_MS_MAX = 30_000;

/** Certificates are always verified, the proxy's included: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment does not turn that off. */
export function openAgent(options: Agent.Options, proxy: HttpProxy | undefined): Agent | EnvHttpProxyAgent {
  const tls = { rejectUnauthorized: true, allowH2: false };
  if (!proxy) return new Agent({ ...options, connect: tls });
  const verified = { connect: tls, requestTls: tls, proxyTls: tls };
  const addresses = { httpProxy: "", httpsProxy: proxy.address.reveal(), noProxy: proxy.noProxy };
  const clientFactory = (origin: URL, own: object) => new Pool(origin, { ...own, headersTimeout: TUNNEL_MS_MAX });
  return new EnvHttpProxyAgent({ ...options, ...verified, ...addresses, clientFactory });
}
