// Connections for outgoing calls: direct, or in tunnels through a company's proxy (proxy.ts).

import { Agent, EnvHttpProxyAgent, Pool } from "undici";
import type { HttpProxy } from "./proxy.ts";

/** How long the proxy may take to open a tunnel. Only this limit ends that wait: aborting a call does not. Calls in a tunnel have other limits. */
const TUNNEL_MS_MAX = 30_000;

/** All certificates are verified, the proxy's too, even with NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment. */
export function openAgent(options: Agent.Options, proxy: HttpProxy | undefined): Agent | EnvHttpProxyAgent {
  const tls = { rejectUnauthorized: true, allowH2: false };
  if (!proxy) return new Agent({ ...options, connect: tls });
  const verified = { connect: tls, requestTls: tls, proxyTls: tls };
  const addresses = { httpProxy: "", httpsProxy: proxy.address.reveal(), noProxy: proxy.noProxy };
  const tunnelOpener = (address: URL, given: object) => new Pool(address, { ...given, headersTimeout: TUNNEL_MS_MAX });
  return new EnvHttpProxyAgent({ ...options, ...verified, ...addresses, clientFactory: tunnelOpener });
}
