// Where the monitor listens, and the URL at which it is reached. Pure.

export type MonitorAddress = { readonly host: string; readonly port: number };

/** A wildcard listens on every address, but requests can't be sent to it: loopback takes its place. */
const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** The URL for requests from this machine; without a slash at its end. */
export function monitorUrl({ host, port }: MonitorAddress): string {
  const reached = WILDCARDS[host] ?? host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^(?:::ffff:)?127\./.test(address);
}
