// Opens the monitor on a free port, with defaults for everything that a test does not set.

import { Hono } from "hono";
import { pino } from "pino";
import { type Page, type Readiness, textPage } from "../../src/web/page.ts";
import type { MonitorDeps } from "../../src/web/routes.ts";
import { type Monitor, openMonitor } from "../../src/web/server.ts";

export const WELL: Readiness = { live: true, reasons: [] };

export type TestMonitor = Monitor & {
  readonly port: number;
  readonly logLines: readonly string[];
  readonly ask: (path: string, init?: RequestInit) => Promise<MonitorAnswer>;
};

type MonitorAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/** Makes a page that shows the word and the query. */
function echoPage(word: string): (query: URLSearchParams) => Promise<Page> {
  return async (query) => textPage(200, [`${word} ${query}`.trim()]);
}

/** `requestedPort` 0 takes any free port. */
export async function openTestMonitor(
  deps: Partial<MonitorDeps> = {},
  host = "127.0.0.1",
  requestedPort = 0,
): Promise<TestMonitor> {
  const logLines: string[] = [];
  const monitor = await openMonitor(
    { host, port: requestedPort },
    {
      log: pino({}, { write: (line) => logLines.push(line) }),
      scrub: (text) => text,
      readiness: () => WELL,
      access: () => undefined,
      metrics: async () => ({ status: 200, contentType: "text/plain", body: "up 1\n" }),
      pages: { "/": echoPage("dashboard"), "/report.html": echoPage("report") },
      api: async () => new Hono(),
      ...deps,
    },
  );
  const { port } = new URL(monitor.url);
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { ...monitor, port: Number(port), logLines, ask };
}
