// A company's way out: the proxy that HTTPS_PROXY names, but for the hosts in NO_PROXY. Only https goes through it, in a tunnel
// whose other end is the service itself: the proxy learns host and port, and neither key nor answer. What is on this machine
// (http is for nothing else) is never asked for through it.

import { AppError } from "./errors.ts";
import { Secret } from "./secret.ts";

export type HttpProxy = {
  /** May hold a user name and password. */
  readonly address: Secret;
  readonly noProxy: string;
  /** For people: which one, and where that is said, without user and password. */
  readonly name: string;
};

type Environment = Readonly<Record<string, string | undefined>>;

/** As other programs read these variables: lower case first, an empty one counts as none, http:// where it says no scheme. */
export function proxyOf(env: Environment): HttpProxy | undefined {
  const [variable, value] = proxyVariable(env);
  if (value === "") return undefined;
  const url = URL.parse(value);
  if (!url || !["http:", "https:"].includes(url.protocol) || url.hostname === "" || !isDecodable(url)) {
    // The value may hold a password.
    throw new AppError("config", `${variable}: expected the address of a proxy, such as http://proxy.example:3128`);
  }
  const name = `the proxy at ${url.host} (${variable})`;
  return { address: new Secret(url.href), noProxy: env.no_proxy ?? env.NO_PROXY ?? "", name };
}

/** What no output may show: the credentials in every form they take, also where the address is one that can't be used. */
export function proxySecrets(env: Environment): readonly Secret[] {
  const url = URL.parse(proxyVariable(env)[1]);
  if (!url || (url.username === "" && url.password === "")) return [];
  const [user, password] = isDecodable(url)
    ? [decodeURIComponent(url.username), decodeURIComponent(url.password)]
    : [url.username, url.password];
  // As the proxy gets them: user:password in base64.
  return [url.password, password, `${user}:${password}`, `${url.username}:${url.password}`].map(
    (text) => new Secret(text),
  );
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
