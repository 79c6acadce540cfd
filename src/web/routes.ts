// Which paths the monitor answers, to whom, and the URL at which it is reached. Pure.

import type { Audience } from "./access.ts";
import { type Page, textPage } from "./page.ts";

export type Readiness = {
  /** Whether the process works at all: where not, it should be started anew. */
  readonly live: boolean;
  /** Whether it can do its work now. */
  readonly ready: boolean;
  /** What is wrong, a sentence each. */
  readonly reasons: readonly string[];
};

export type Route = {
  readonly audience: Audience;
  readonly answer: (query: URLSearchParams) => Page | Promise<Page>;
};

/** Path to route. */
export type Routes = Readonly<Record<string, Route>>;

export type MonitorDeps = {
  readonly health: () => Readiness;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly dashboard: Dashboard;
};

export type Dashboard = Readonly<Record<"page" | "report", (query: URLSearchParams) => Promise<Page>>>;

export function routesOf({ health, metrics, dashboard }: MonitorDeps): Routes {
  return {
    "/": { audience: "people", answer: dashboard.page },
    "/report.html": { audience: "people", answer: dashboard.report },
    "/livez": { audience: "anyone", answer: () => readinessPage(health(), "live") },
    "/readyz": { audience: "anyone", answer: () => readinessPage(health(), "ready") },
    "/metrics": {
      audience: "machines",
      async answer() {
        const { contentType, text } = await metrics();
        return { status: 200, contentType, body: text };
      },
    },
  };
}

function readinessPage(health: Readiness, asked: "live" | "ready"): Page {
  return health[asked] ? textPage(200, ["ok"]) : textPage(503, health.reasons);
}

// Where the monitor is reached. Pure.

export type MonitorAddress = { readonly host: string; readonly port: number };

/** Every address of the machine, of which loopback is one: nothing can be asked at the wildcard itself. */
const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** For whoever asks from the same machine; without a slash at its end. */
export function monitorUrl({ host, port }: MonitorAddress): string {
  const reached = WILDCARDS[host] ?? host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}
