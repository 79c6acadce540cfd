// What the monitor answers at which path.

export type Health = {
  /** Whether the process works at all: where not, it should be started anew. */
  readonly live: boolean;
  /** Whether it can do its work now. */
  readonly ready: boolean;
  /** What is wrong, a sentence each. */
  readonly reasons: readonly string[];
};

export type Page = { readonly status: number; readonly contentType: string; readonly body: string };

/** Path to page. */
export type Routes = Readonly<Record<string, () => Page | Promise<Page>>>;

export type MonitorDeps = {
  readonly health: () => Health;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
};

export function routesOf({ health, metrics }: MonitorDeps): Routes {
  return {
    "/livez": () => healthPage(health(), "live"),
    "/readyz": () => healthPage(health(), "ready"),
    "/metrics": async () => {
      const { contentType, text } = await metrics();
      return { status: 200, contentType, body: text };
    },
  };
}

export function textPage(status: number, lines: readonly string[]): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n` };
}

function healthPage(health: Health, asked: "live" | "ready"): Page {
  return health[asked] ? textPage(200, ["ok"]) : textPage(503, health.reasons);
}
