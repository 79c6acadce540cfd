// What the server of a worker answers: health checks for everybody, everything else only for those who have access.

import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { secureHeaders } from "hono/secure-headers";
import type { Logger } from "pino";
import { memoizeAsync } from "../async.ts";
import { errorText } from "../errors.ts";
import { type Access, refusalPage } from "./access.ts";
import { scriptPage, scriptPath } from "./assets.ts";
import { type MakePage, type Page, type Readiness, textPage } from "./page.ts";

export type MonitorDeps = {
  readonly log: Logger;
  /** Hides secrets in use from every page: the reason of a failure may quote one. */
  readonly scrub: (text: string) => string;
  /** The credentials that visitors must send, as they are now; undefined if none are needed. */
  readonly access: () => Access | undefined;
  readonly readiness: () => Readiness;
  readonly metrics: () => Promise<Page>;
  /** The pages by path, as web/dashboard/pages.ts makes them. */
  readonly pages: Readonly<Record<string, MakePage>>;
  /** Loads the read API, which is at /api/v1/. */
  readonly api: () => Promise<{ readonly fetch: (request: Request) => Response | Promise<Response> }>;
};

/** How long a page that was made for one visitor is sent to others with the same URL, so that hundreds at once cost little more than one. */
const SHARED_MS = 1_000;

function respond({ status, contentType, body, headers }: Page): Response {
  const bytes = Buffer.from(body);
  const all = {
    "cache-control": "no-store",
    // A page of the dashboard replaces the policy by its own.
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "content-type": contentType,
    "content-length": String(bytes.length),
    ...headers,
  };
  return new Response(bytes, { status, headers: all });
}

/** `isLoopback`: only this machine can reach the server. */
export function requestListener(deps: MonitorDeps, isLoopback: boolean) {
  const { pages, readiness, metrics, log, scrub } = deps;
  const app = new Hono<{ Bindings: HttpBindings }>();
  const scrubbed = (page: Page): Page => ({ ...page, body: scrub(page.body) });
  const send = (page: Page) => respond(scrubbed(page));

  app.use(secureHeaders({ strictTransportSecurity: false, xFrameOptions: "DENY" }), compress());
  app.use(async (c, next) =>
    c.req.method === "GET" || c.req.method === "HEAD"
      ? next()
      : send(textPage(405, ["expected GET or HEAD"], { allow: "GET, HEAD" })),
  );
  const answerHealth = (isGood: boolean) => send(isGood ? textPage(200, ["ok"]) : textPage(503, readiness().reasons));
  app.get("/livez", () => answerHealth(readiness().live));
  app.get("/readyz", () => answerHealth(readiness().reasons.length === 0));

  app.use(async (c, next) => {
    const refused = refusalPage(deps.access(), isLoopback, c.env.incoming.headers);
    if (refused) return send(refused);
    // Postgres refuses a text with NUL.
    if (!c.req.url.includes("%00")) return next();
    return send(textPage(400, ["a parameter holds the character NUL, which no name contains"]));
  });
  app.get("/metrics", async () => send(await metrics()));
  // A page that failed is made again for the next visitor.
  const shared = memoizeAsync<Page>(({ status }) => (status === 200 ? SHARED_MS : 0));
  for (const [path, make] of Object.entries({ ...pages, [`/${scriptPath()}`]: scriptPage }))
    app.get(path, async (c) => {
      const { search, searchParams } = new URL(c.req.url);
      return respond(await shared(path + search, async () => scrubbed(await make(searchParams))));
    });
  app.get("/api/v1/*", async (c, next) => {
    const answer = await (await deps.api()).fetch(c.req.raw);
    return answer.status === 404 ? next() : send(await pageOf(answer));
  });

  const known = [...Object.keys(pages), "/livez", "/readyz", "/metrics", "/api/v1/openapi.json"];
  app.notFound(() => send(textPage(404, ["there is no such page; there are:", ...known])));
  app.onError((error, c) => {
    log.error({ path: c.req.path, reason: errorText(error) }, "monitor page failed");
    return send(textPage(500, ["this page could not be made; the log says why"]));
  });
  // `hostname` is used for a request without a Host header.
  return getRequestListener(app.fetch, { hostname: "localhost" });
}

/** Reads the body as bytes, because text() would leave out the byte order mark of a CSV. */
async function pageOf(answer: Response): Promise<Page> {
  const { "content-type": contentType = "", ...headers } = Object.fromEntries(answer.headers);
  return { status: answer.status, contentType, body: Buffer.from(await answer.arrayBuffer()).toString(), headers };
}
