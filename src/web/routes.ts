// Which paths the monitor answers, to whom, and the URL at which it is reached.

import type { Audience } from "./access.ts";
import { scriptPage, scriptPath } from "./assets.ts";
import { type Page, textPage } from "./page.ts";

export type Readiness = {
  /** Whether the process works at all: if not, it should be restarted. */
  readonly live: boolean;
  /** Why it can't do its work now, a sentence each; none if it is ready. */
  readonly reasons: readonly string[];
};

export type Answer = (query: URLSearchParams) => Page | Promise<Page>;

export type Route = { readonly audience: Audience; readonly answer: Answer };

/** Path to route. */
export type Routes = Readonly<Record<string, Route>>;

export type MonitorDeps = {
  readonly readiness: () => Readiness;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** The pages of the dashboard, by path. */
  readonly pages: Readonly<Record<string, Answer>>;
};

export function routesOf({ readiness, metrics, pages }: MonitorDeps): Routes {
  const healthPage = (isGood: (now: Readiness) => boolean) => {
    const now = readiness();
    return isGood(now) ? textPage(200, ["ok"]) : textPage(503, now.reasons);
  };
  return {
    ...Object.fromEntries(Object.entries(pages).map(([path, answer]) => [path, { audience: "people", answer }])),
    "/livez": { audience: "anyone", answer: () => healthPage(({ live }) => live) },
    "/readyz": { audience: "anyone", answer: () => healthPage(({ reasons }) => reasons.length === 0) },
    "/metrics": {
      audience: "machines",
      async answer() {
        const { contentType, text } = await metrics();
        return { status: 200, contentType, body: text };
      },
    },
    [`/${scriptPath()}`]: { audience: "people", answer: scriptPage },
  };
}

export type MonitorAddress = { readonly host: string; readonly port: number };

/** A wildcard listens on every address, but requests can't be sent to it: loopback takes its place. */
const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** The URL for requests from this machine; without a slash at its end. */
export function monitorUrl({ host, port }: MonitorAddress): string {
  const reached = WILDCARDS[host] ?? host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}
