// Reads the proxy from HTTPS_PROXY, and from NO_PROXY the hosts to call without it. Requests go through a tunnel to the service: the proxy
// learns neither key nor answer. Requests over http use no proxy; they may go only to this machine.

import { AppError } from "./errors.ts";
import { decoded, Secret } from "./secret.ts";

/** The address may hold a user name and password. */
export type HttpProxy = { readonly address: Secret; readonly noProxy: string };

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable in lower case takes precedence, an empty value means no proxy, and the default scheme is http. */
export function proxyOf(env: Environment): HttpProxy | undefined {
  const { variable, address } = proxyVariable(env);
  if (address === "") return undefined;
  const url = URL.parse(address);
  // undici decodes the user name and the password, and throws if it can't.
  const isDecodable = decoded(`${url?.username}:${url?.password}`) !== undefined;
  if (!url || !["http:", "https:"].includes(url.protocol) || url.hostname === "" || !isDecodable) {
    // The address is not quoted: it may hold a password.
    throw new AppError("config", `${variable}: expected the address of a proxy, such as http://proxy.example:3128`);
  }
  return { address: new Secret(url.href), noProxy: env.no_proxy ?? env.NO_PROXY ?? "" };
}

/** Returns the error to throw if the proxy refused to open a tunnel, so that nothing was sent to the service; else undefined. */
export function tunnelError(error: unknown): AppError | undefined {
  // Only the message of undici's error has the status.
  const found = error instanceof Error && /^Proxy response \((\d+)\)/.exec(error.message);
  if (!found) return undefined;
  const status = Number(found[1]);
  const isTemporary = status >= 500 || status === 408 || status === 429;
  const reason = status === 407 ? ": it needs a user name and password, or those given are wrong" : "";
  const message = `the proxy (HTTPS_PROXY) refused the connection with status ${status}${reason}`;
  return new AppError(isTemporary ? "unavailable" : "rejected", message, { details: { sent: "no" } });
}

/** The address is not checked; it is empty if there is no proxy. */
export function proxyVariable(env: Environment): { readonly variable: string; readonly address: string } {
  const variable = env.https_proxy === undefined ? "HTTPS_PROXY" : "https_proxy";
  const value = env[variable]?.trim() ?? "";
  return { variable, address: value === "" || /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}` };
}
