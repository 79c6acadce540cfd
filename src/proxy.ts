// Finds the proxy that HTTPS_PROXY names, except for the hosts in NO_PROXY. Requests go through it in a tunnel that ends at the service itself:
// the proxy learns neither key nor answer. Requests to this machine, the only ones over http, never use it.

import { AppError } from "./errors.ts";
import { Secret } from "./secret.ts";

export type HttpProxy = {
  /** May hold a user name and password. */
  readonly address: Secret;
  readonly noProxy: string;
};

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable in lower case comes first, an empty value means no proxy, and the default scheme is http. */
export function proxyOf(env: Environment): HttpProxy | undefined {
  const [variable, value] = proxyVariable(env);
  if (value === "") return undefined;
  const url = URL.parse(value);
  if (!url || !["http:", "https:"].includes(url.protocol) || url.hostname === "" || !isDecodable(url)) {
    // The value may hold a password.
    throw new AppError("config", `${variable}: expected the address of a proxy, such as http://proxy.example:3128`);
  }
  return { address: new Secret(url.href), noProxy: env.no_proxy ?? env.NO_PROXY ?? "" };
}

/** The error of a proxy that makes no tunnel, so that nothing was sent to the service; undefined for any other error. */
export function tunnelError(error: unknown): AppError | undefined {
  // undici has the status in its message alone.
  const text = error instanceof Error ? /^Proxy response \((\d+)\)/.exec(error.message)?.[1] : undefined;
  if (text === undefined) return undefined;
  const status = Number(text);
  const isTemporary = status >= 500 || status === 408 || status === 429;
  const reason = status === 407 ? ": it needs a user name and password, or refuses the ones it got" : "";
  const message = `the proxy (HTTPS_PROXY) makes no connection, it answered ${status}${reason}`;
  return new AppError(isTemporary ? "unavailable" : "rejected", message, { details: { sent: "no" } });
}

/** The address, unchecked; empty if there is no proxy. */
export function proxyAddress(env: Environment): string {
  return proxyVariable(env)[1];
}

function proxyVariable(env: Environment): readonly [name: string, value: string] {
  const variable = env.https_proxy === undefined ? "HTTPS_PROXY" : "https_proxy";
  const value = env[variable]?.trim() ?? "";
  return [variable, value === "" || /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`];
}

function isDecodable({ username, password }: URL): boolean {
  try {
    return decodeURIComponent(`${username}${password}`) !== undefined;
  } catch {
    return false;
  }
}
