// The paths that the monitor answers, and to whom. No request changes anything. The first request loads this module: Hono takes 40 ms, which a
// worker's start need not wait for.

import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { etag } from "hono/etag";
import { secureHeaders } from "hono/secure-headers";
import type { Logger } from "pino";
import { errorText } from "../errors.ts";
import { type Access, refusal } from "./access.ts";
import { scriptPage, scriptPath } from "./assets.ts";
import { type Answer, type Page, pageBytes, type Readiness, textPage } from "./page.ts";
import { type SharingLimits, sharePages } from "./shared-pages.ts";

export type MonitorDeps = {
  readonly log: Logger;
  /** Hides secrets in use from every page: the reason of a failure may quote one. */
  readonly scrub: (text: string) => string;
  /** What visitors must send now; undefined if nothing. */
  readonly access: () => Access | undefined;
  readonly readiness: () => Readiness;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** The pages of the dashboard, by path. */
  readonly pages: Readonly<Record<string, Answer>>;
  /** The read API, at /api/v1/, which the first request to it loads. */
  readonly api: () => Promise<{ readonly fetch: (request: Request) => Response | Promise<Response> }>;
};

/** A client that reads an answer more slowly than `sendMs` is cut off: it counts among the answers in progress, whose number is limited. */
export type Limits = SharingLimits & { readonly sendMs: number };

type ServerState = Limits & {
  /** Only this machine can reach the monitor. */
  readonly isLoopback: boolean;
  readonly isClosing: () => boolean;
};

type Env = { Bindings: HttpBindings };
type Handler = MiddlewareHandler<Env>;

/** Compressing less than this gains nothing, and the answer to a health check must not wait for the threads that compress. */
const COMPRESSED_BYTES_MIN = 4_096;
/**
 * Limits for answers being made or sent. Health checks have none, because their answers are ready and small. People who want the same page
 * wait for one reading of it, and are sent the same bytes, so that each of them takes some kilobytes; each scrape is a reading of its own.
 */
const SCRAPES_MAX = 50;
const PAGES_MAX = 400;
/** The Retry-After of an answer that is refused because too many are being made. */
const BUSY_SECONDS = 5;

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

/** The listener for the requests of a server. */
export function openRoutes(deps: MonitorDeps, server: ServerState) {
  const { pages, readiness, metrics, log } = deps;
  const send = sender(deps.scrub);
  const app = new Hono<Env>();
  app.use(finish(server), secureHeaders({ strictTransportSecurity: false, xFrameOptions: "DENY" }), async (c, next) =>
    c.req.method === "GET" || c.req.method === "HEAD"
      ? next()
      : send(c, textPage(405, ["expected GET or HEAD"], { allow: "GET, HEAD" })),
  );
  const answerHealth = (c: Context, isGood: boolean) =>
    send(c, isGood ? textPage(200, ["ok"]) : textPage(503, readiness().reasons));
  app.get("/livez", (c) => answerHealth(c, readiness().live));
  app.get("/readyz", (c) => answerHealth(c, readiness().reasons.length === 0));

  app.use((c, next) => {
    const refused = refusal(deps.access(), server.isLoopback, c.env.incoming.headers);
    if (refused) return send(c, refused);
    // Postgres refuses such a text.
    if (!c.req.url.includes("%00")) return next();
    return send(c, textPage(400, ["a parameter holds the character NUL, which is in no name"]));
  });
  app.get("/metrics", limit(SCRAPES_MAX, send), async (c) => {
    const { contentType, text: body } = await metrics();
    return send(c, { status: 200, contentType, body });
  });
  app.use(limit(PAGES_MAX, send), etag());
  const shared = sharePages(server);
  for (const [path, answer] of Object.entries({ ...pages, [`/${scriptPath()}`]: scriptPage }))
    app.get(path, async (c) => {
      const { search, searchParams } = new URL(c.req.url);
      return send(c, await shared(path + search, async () => answer(searchParams)));
    });
  app.get("/api/v1/*", async (c, next) => {
    const answer = await (await deps.api()).fetch(c.req.raw);
    return answer.status === 404 ? next() : send(c, await pageOf(answer));
  });

  const known = [...Object.keys(pages), "/livez", "/readyz", "/metrics", "/api/v1/openapi.json"];
  app.notFound((c) => send(c, textPage(404, ["there is no such page; there are:", ...known])));
  app.onError((error, c) => {
    log.error({ path: c.req.path, reason: errorText(error) }, "monitor page failed");
    return send(c, textPage(500, ["this page could not be made; the log says why"]));
  });
  return getRequestListener(app.fetch, { hostname: "localhost", autoCleanupIncoming: false });
}

type Send = (c: Context, page: Page) => Promise<Response>;

function sender(scrub: (text: string) => string): Send {
  return async (c, page) => {
    const { plain, compressed, tag } = pageBytes(page, scrub);
    const isCompressed =
      plain.length >= COMPRESSED_BYTES_MIN &&
      /\bgzip\b(?!\s*;\s*q=0(\.0+)?\s*(,|$))/i.test(c.req.header("accept-encoding") ?? "");
    const body = isCompressed ? await compressed() : plain;
    return new Response(body, {
      status: page.status,
      headers: {
        "content-type": page.contentType,
        "content-length": String(body.length),
        vary: "accept-encoding",
        ...(page.status === 200 && { etag: tag }),
        ...(isCompressed && { "content-encoding": "gzip" }),
        ...page.headers,
      },
    });
  };
}

/** Not with text(), which would leave out the byte order mark of a CSV. */
async function pageOf(answer: Response): Promise<Page> {
  const { "content-type": contentType = "", ...headers } = Object.fromEntries(answer.headers);
  return { status: answer.status, contentType, body: Buffer.from(await answer.arrayBuffer()).toString(), headers };
}

/** Adds the headers of every answer, unless it has its own, and ends one that is not read. */
function finish({ isClosing, sendMs }: ServerState): Handler {
  return async (c, next) => {
    await next();
    const { incoming, outgoing } = c.env;
    // Not with c.header(), which would copy the body.
    const { headers } = c.res;
    for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value);
    // The body of a request is not read. On a connection that stays open it would be taken for the next request, so the connection
    // is closed.
    const { "transfer-encoding": encoding, "content-length": length = "0" } = incoming.headers;
    if (isClosing() || encoding !== undefined || Number(length) > 0) headers.set("connection", "close");
    const timer = setTimeout(() => outgoing.destroy(), sendMs);
    outgoing.once("close", () => clearTimeout(timer));
  };
}

/** Refuses a request while this many are being answered. */
function limit(max: number, send: Send): Handler {
  let inProgress = 0;
  const busy = textPage(503, ["too many pages are being made at this moment: try again"], {
    "retry-after": String(BUSY_SECONDS),
    connection: "close",
  });
  return async (c, next) => {
    if (inProgress >= max) return send(c, busy);
    inProgress++;
    c.env.outgoing.once("close", () => inProgress--);
    return next();
  };
}
