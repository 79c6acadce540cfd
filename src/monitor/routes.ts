// What the monitor answers at which path, and to whom.

import type { Audience } from "./access.ts";
import { type Page, textPage } from "./page.ts";

export type Health = {
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
  readonly health: () => Health;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly dashboard: Dashboard;
};

export type Dashboard = Readonly<Record<"page" | "report", (query: URLSearchParams) => Promise<Page>>>;

export function routesOf({ health, metrics, dashboard }: MonitorDeps): Routes {
  return {
    "/": { audience: "people", answer: dashboard.page },
    "/report.html": { audience: "people", answer: dashboard.report },
    "/livez": { audience: "anyone", answer: () => healthPage(health(), "live") },
    "/readyz": { audience: "anyone", answer: () => healthPage(health(), "ready") },
    "/metrics": {
      audience: "machines",
      async answer() {
        const { contentType, text } = await metrics();
        return { status: 200, contentType, body: text };
      },
    },
  };
}

function healthPage(health: Health, asked: "live" | "ready"): Page {
  return health[asked] ? textPage(200, ["ok"]) : textPage(503, health.reasons);
}
