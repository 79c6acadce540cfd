// Where the monitor is reached. Pure.

export type MonitorAddress = { readonly host: string; readonly port: number };

/** Every address of the machine, of which loopback is one: nothing can be asked at the wildcard itself. */
const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** For whoever asks from the same machine; without a slash at its end. */
export function monitorUrl({ host, port }: MonitorAddress): string {
  const reached = WILDCARDS[host] ?? host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}
