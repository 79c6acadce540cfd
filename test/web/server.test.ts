import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { get } from "node:http";
import net from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { scriptPage, scriptPath } from "../../src/web/assets.ts";
import { type Page, textPage } from "../../src/web/page.ts";
import { BUSY_MS } from "../support/limits.ts";
import { openTestMonitor, WELL } from "./test-monitor.ts";

const STARTING = { live: true, reasons: ["the database does not answer", "no tick for 5 minutes"] };
const STUCK = { live: false, reasons: ["no tick for an hour"] };

test.each([
  ["/livez", WELL, 200, "ok\n"],
  ["/readyz", WELL, 200, "ok\n"],
  ["/livez", STARTING, 200, "ok\n"],
  ["/readyz", STARTING, 503, "the database does not answer\nno tick for 5 minutes\n"],
  ["/livez", STUCK, 503, "no tick for an hour\n"],
  ["/readyz?verbose", WELL, 200, "ok\n"],
])("%s with the readiness %o answers %i", async (path, health, status, body) => {
  await using monitor = await openTestMonitor({ readiness: () => health });
  const { headers, ...answer } = await monitor.ask(path);
  expect(answer).toEqual({ status, text: body });
  expect(Object.fromEntries(headers)).toMatchObject({
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
});

test("after a failure to load the routes, the next request loads them again", async () => {
  let loads = 0;
  const pages = new Proxy(
    {},
    {
      ownKeys() {
        if (++loads === 1) throw new Error("the file is gone");
        return [];
      },
    },
  );
  await using monitor = await openTestMonitor({ pages });
  expect(await monitor.ask("/livez")).toMatchObject({ status: 500 });
  expect(monitor.logLines.join()).toContain("the file is gone");
  expect(await monitor.ask("/livez")).toMatchObject({ status: 200 });
});

test("/metrics answers the metrics, with their content type", async () => {
  const page = { status: 200, contentType: "text/x", body: "up 1\n" };
  await using monitor = await openTestMonitor({ metrics: async () => page });
  const { headers, text } = await monitor.ask("/metrics");
  expect([headers.get("content-type"), text]).toEqual(["text/x", "up 1\n"]);
});

test("HEAD answers what GET would, without a body", async () => {
  await using monitor = await openTestMonitor({ readiness: () => STARTING });
  const { status, headers, text } = await monitor.ask("/readyz", { method: "HEAD" });
  const length = String(`${STARTING.reasons.join("\n")}\n`.length);
  expect([status, headers.get("content-length"), text]).toEqual([503, length, ""]);
});

test.each([
  ["/", "dashboard\n"],
  ["/?days=7&x=%3C", "dashboard days=7&x=%3C\n"],
  ["/?", "dashboard\n"],
  ["/report.html?from=2026-01-01", "report from=2026-01-01\n"],
])("%s is answered by the dashboard", async (path, body) => {
  await using monitor = await openTestMonitor();
  // This page is kept for a moment, and is the answer to no other query.
  await monitor.ask("/?days=28");
  expect(await monitor.ask(path)).toMatchObject({ status: 200, text: body });
});

test.each(["/?job=%00", "/report.html?a%00=1"])("%s, with the character NUL, is refused", async (path) => {
  await using monitor = await openTestMonitor();
  const text = "a parameter holds the character NUL, which no name contains\n";
  expect(await monitor.ask(path)).toMatchObject({ status: 400, text });
});

test("the headers of every page forbid framing, embedding, caching, referrers and loading anything", async () => {
  await using monitor = await openTestMonitor();
  for (const path of ["/", "/livez", "/nothing"]) {
    const { headers } = await monitor.ask(path);
    expect(Object.fromEntries(headers)).toMatchObject({
      "cache-control": "no-store",
      "content-security-policy": expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
    });
  }
});

test.each(["/nothing", "/metrics/", "//", "/toString", "/__proto__"])(
  "the answer to the unknown path %s lists the existing paths",
  async (path) => {
    await using monitor = await openTestMonitor();
    const paths = ["/", "/report.html", "/livez", "/readyz", "/metrics", "/api/v1/openapi.json", ""];
    const text = expect.stringMatching(`there are:\n${paths.join("\n")}$`);
    expect(await monitor.ask(path)).toMatchObject({ status: 404, text });
  },
);

test("methods other than GET and HEAD are refused", async () => {
  await using monitor = await openTestMonitor();
  for (const [method, path] of Object.entries({ POST: "/metrics", DELETE: "/", OPTIONS: "/livez", PUT: "/nothing" })) {
    const { status, headers } = await monitor.ask(path, { method });
    expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  }
});

test("the reason for which a page failed is only in the log", async () => {
  await using monitor = await openTestMonitor({ metrics: () => Promise.reject(new Error("at postgres://me:pw@db")) });
  const text = "this page could not be made; the log says why\n";
  expect(await monitor.ask("/metrics")).toMatchObject({ status: 500, text });
  expect(monitor.logLines.map((line) => JSON.parse(line))).toMatchObject([
    { path: "/metrics", reason: "at postgres://me:pw@db", msg: "monitor page failed" },
  ]);
});

test("a secret in use is hidden on a page", async () => {
  const readiness = () => ({ ...STARTING, reasons: ["password sesame refused"] });
  await using monitor = await openTestMonitor({ readiness, scrub: (text) => text.replaceAll("sesame", "[secret]") });
  expect((await monitor.ask("/readyz")).text).toBe("password [secret] refused\n");
});

test("an answer that is in progress when the monitor closes is finished", async () => {
  const { promise, resolve } = Promise.withResolvers<Page>();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const monitor = await openTestMonitor({
    metrics: () => {
      ask();
      return promise;
    },
  });
  const scrape = monitor.ask("/metrics");
  await Promise.race([asked, scrape]);
  const closed = monitor[Symbol.asyncDispose]();
  resolve({ status: 200, contentType: "text/plain", body: "last 1\n" });
  expect((await scrape).text).toBe("last 1\n");
  await closed;
});

test.each([
  ["a port that is taken", "127.0.0.1", /^monitor\.port: expected a free port; \d+ at 127\.0\.0\.1 is in use/],
  ["an address of another machine", "192.0.2.1", /^monitor\.host: expected an address of this machine; .*192\.0\.2\.1/],
])("listening on %s fails as a mistake of the configuration", async (_name, host, message) => {
  await using other = await openTestMonitor();
  const failure = { code: "config", message: expect.stringMatching(message) };
  await expect(openTestMonitor({}, host, other.port)).rejects.toMatchObject(failure);
});

/** Opens connections that send these bytes and nothing else. They are closed at the end of the test. */
async function connectAndSend(port: number, count: number, bytes: string): Promise<readonly net.Socket[]> {
  const sockets = Array.from({ length: count }, () => net.connect(port, "127.0.0.1"));
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  await Promise.all(
    sockets.map(async (socket) => {
      socket.on("error", () => {}).resume();
      await once(socket, "connect");
      if (bytes !== "") socket.write(bytes);
    }),
  );
  return sockets;
}

/** The statuses of this many health checks, each on a connection of its own; 0 for one that got no answer. */
async function healthChecks(url: string, count: number): Promise<readonly number[]> {
  const check = async () => {
    const signal = AbortSignal.timeout(BUSY_MS);
    const response = await once(get(`${url}/livez`, { agent: false, signal }), "response").catch(() => []);
    response[0]?.resume();
    return response[0]?.statusCode ?? 0;
  };
  return Promise.all(Array.from({ length: count }, check));
}

test.each([
  ["requests with unfinished headers", 1000, "GET / HTTP/1.1\r\nHost: localhost\r\n"],
  ["connections that send nothing", 300, ""],
  [
    "health checks without their body",
    300,
    "GET /livez HTTP/1.1\r\nHost: localhost\r\ncontent-length: 10\r\n\r\n12345",
  ],
])("every health check is answered while there are %s (%i of them)", async (_what, count, bytes) => {
  await using monitor = await openTestMonitor();
  await connectAndSend(monitor.port, count, bytes);
  expect(await healthChecks(monitor.url, 20)).toEqual(Array.from({ length: 20 }, () => 200));
});

test("pages that hang block neither health checks nor the end of the monitor", async () => {
  let asked = 0;
  await using monitor = await openTestMonitor({
    metrics: () => {
      asked++;
      return new Promise<never>(() => {});
    },
  });
  await connectAndSend(monitor.port, 200, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await expect.poll(() => asked).toBeGreaterThan(10);
  const hanging = monitor.ask("/metrics").catch((error: unknown) => error);
  expect(await healthChecks(monitor.url, 20)).toEqual(Array.from({ length: 20 }, () => 200));
  const startedMs = performance.now();
  await monitor[Symbol.asyncDispose]();
  // Sooner than a silent connection is closed anyway.
  expect(performance.now() - startedMs).toBeLessThan(BUSY_MS);
  expect(await hanging).toBeInstanceOf(TypeError);
  await expect(monitor.ask("/livez")).rejects.toThrow();
});

test("the connection of an unfinished request is closed after some seconds", async () => {
  await using monitor = await openTestMonitor();
  const startedMs = performance.now();
  const unfinished = ["", "GET /livez HTTP/1.1\r\nHost: localhost\r\n"];
  const opened = await Promise.all(unfinished.map((bytes) => connectAndSend(monitor.port, 1, bytes)));
  await Promise.all(opened.flat().map((socket) => once(socket, "close")));
  expect(performance.now() - startedMs).toBeLessThan(BUSY_MS);
});

test("clients that read nothing of large pages block neither health checks nor the pages of others", async () => {
  const large = { status: 200, contentType: "text/html", body: randomBytes(500_000).toString("hex") };
  const pages = { "/": async () => large, "/report.html": async () => textPage(200, ["small"]) };
  await using monitor = await openTestMonitor({ pages });
  const sockets = await connectAndSend(monitor.port, 100, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (const socket of sockets) socket.pause();
  expect(await healthChecks(monitor.url, 20)).toEqual(Array.from({ length: 20 }, () => 200));
  expect(await monitor.ask("/report.html")).toMatchObject({ status: 200 });
});

test("a page that was made for one visitor is shown to others for a moment, unless it failed", async () => {
  let made = 0;
  const pages = { "/": async () => textPage(made++ === 0 ? 503 : 200, [String(made)]) };
  await using monitor = await openTestMonitor({ pages });
  const ask = async () => (await monitor.ask("/")).text;
  expect(await ask()).toBe("1\n");
  expect(new Set(await Promise.all(Array.from({ length: 50 }, ask))).size).toBeLessThan(50);
  await expect.poll(ask).toBe(`${made + 1}\n`);
});

test.each([
  ["gzip, br", "gzip"],
  ["br", null],
])("a large page for a client that accepts %s has the encoding %s", async (accepted, encoding) => {
  const text = "many slices ".repeat(1000);
  await using monitor = await openTestMonitor({ pages: { "/": async () => textPage(200, [text]) } });
  const large = await monitor.ask("/", { headers: { "accept-encoding": accepted } });
  expect([large.headers.get("content-encoding"), large.text]).toEqual([encoding, `${text}\n`]);
});

test("the compressed script of the pages may be kept by a browser for a year", async () => {
  // From the sources the script is bundled first, which takes long on a busy machine.
  await scriptPage();
  await using monitor = await openTestMonitor();
  const { headers, text } = await monitor.ask(`/${scriptPath()}`, { headers: { "accept-encoding": "gzip" } });
  expect(Object.fromEntries(headers)).toMatchObject({
    "cache-control": "public, max-age=31536000, immutable",
    "content-type": "text/javascript; charset=utf-8",
    "content-encoding": "gzip",
  });
  // A text of the charts: the script draws them.
  expect(text).toContain("the table below has the amounts");
  expect(await monitor.ask("/assets/app-other.js")).toMatchObject({ status: 404 });
});
