// Connections to the service that break or do not begin, directly and through a company's proxy (CONNECT).

import https from "node:https";
import type net from "node:net";
import tls from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { proxyOf } from "../../src/proxy.ts";
import type { ServiceCall } from "../../src/service/client-types.ts";
import { authority, certificate } from "../support/certificates.ts";
import { AUTHORITY, connectProxy, type ProxyOptions, tlsFront } from "../support/connect-proxy.ts";
import {
  answeringJson,
  answerJson,
  listen,
  rawServer,
  type Script,
  scriptedServer,
} from "../support/scripted-server.ts";
import { hangSignal, KEY, KEY_TEXT, openTestService, READ } from "./open-test-service.ts";

const BODY = JSON.stringify({ start: "2026-03-01", end: "2026-03-01", results: [{ requests: 12 }] });
const HEAD = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n`;
const CHUNKED_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";

/** Starts a server that answers with the bytes of the script. `read` calls it. */
async function open(script: Parameters<typeof rawServer>[0], timeoutSeconds = 30, scheme = "http:") {
  const server = await rawServer(script);
  const service = openTestService(server.origin.replace("http:", scheme), { timeoutSeconds });
  onTestFinished(async () => {
    await service[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });
  const read = (method: ServiceCall["method"] = "GET", signal = hangSignal()) =>
    service.call({ ...READ, method }, KEY, signal);
  return { read };
}

type Fault = (socket: net.Socket) => void;

test.each<[string, Fault]>([
  ["ends before the headers", (socket) => socket.end()],
  ["is reset before the headers", (socket) => socket.resetAndDestroy()],
  ["ends within the headers", (socket) => socket.end(HEAD.slice(0, 30))],
  ["ends one byte early", (socket) => socket.end((HEAD + BODY).slice(0, -1))],
  ["ends within a chunk", (socket) => socket.end(`${CHUNKED_HEAD}ff\r\n${BODY}`)],
  ["ends before the last chunk", (socket) => socket.end(`${CHUNKED_HEAD}${BODY.length.toString(16)}\r\n${BODY}\r\n`)],
  ["is not HTTP", (socket) => socket.end("220 mail.example ESMTP\r\n")],
  ["is an upgrade", (socket) => socket.end("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")],
])("after an answer that %s the whole answer is requested again", async (_name, fault) => {
  const asked: string[] = [];
  const { read } = await open((socket, number, request) => {
    asked.push(request);
    if (number === 1) fault(socket);
    else socket.end(HEAD + BODY);
  });
  expect((await read()).value).toEqual(JSON.parse(BODY));
  expect(asked).toHaveLength(2);
  expect(asked.join("")).not.toMatch(/^range:/im);
});

test("an answer without a length that ends early is a bad answer", async () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
  const { read } = await open((socket) => socket.end(head + BODY.slice(0, 40)));
  await expect(read()).rejects.toMatchObject({ code: "bad_answer" });
});

test("endless headers are cut off", async () => {
  const { read } = await open((socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}`));
  const message = expect.stringContaining("UND_ERR_HEADERS_OVERFLOW");
  await expect(read("POST")).rejects.toMatchObject({ code: "unavailable", message });
});

test("an attempt whose TLS handshake does not end stops at its time limit", async () => {
  const { read } = await open(() => undefined, 0.05, "https:");
  await expect(read("POST")).rejects.toThrow("no whole answer within 0.05 s");
});

test("an abort ends a call during the TLS handshake", async () => {
  const controller = new AbortController();
  const { read } = await open(() => controller.abort("enough"), 30, "https:");
  await expect(read("GET", controller.signal)).rejects.toBe("enough");
});

test("HTTP/2 is not offered", async () => {
  let hello = "";
  const answer: Parameters<typeof rawServer>[0] = (socket, _number, request) => {
    hello = request;
    socket.destroy();
  };
  const { read } = await open(answer, 30, "https:");
  await expect(read("POST")).rejects.toMatchObject({ code: "unavailable" });
  // Over HTTP/2 undici may send a request twice. In a TLS hello each protocol's name is after its length.
  expect(hello).toContain("\x08http/1.1");
  expect(hello).not.toContain("\x02h2");
});

test.each([undefined, "0"])(
  "a self-signed certificate ends the call, with NODE_TLS_REJECT_UNAUTHORIZED %s",
  async (setting) => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", setting);
    onTestFinished(() => void vi.unstubAllEnvs());
    let requests = 0;
    const tls = https.createServer(certificate(), (_request, response) => {
      requests++;
      response.end("{}");
    });
    await using server = await listen(tls);
    await using service = openTestService(`https://127.0.0.1:${server.port}`);
    await expect(service.call(READ, KEY, hangSignal())).rejects.toMatchObject({
      code: "rejected",
      message: expect.stringContaining("DEPTH_ZERO_SELF_SIGNED_CERT"),
      details: { sent: "no" },
    });
    expect(service.sleeps).toEqual([]);
    expect(requests).toBe(0);
  },
);

tls.setDefaultCACertificates([AUTHORITY.cert]);

const CREATE: ServiceCall = { ...READ, operation: "create_key", method: "POST", body: {} };
const FINE = answeringJson(200, { fine: true });

/** A service over https, a proxy, and a client that uses the proxy; all are closed at the end of the test. */
async function behindProxy(script: Script, options: ProxyOptions = {}, { env = {}, maxConcurrent = 4 } = {}) {
  const opened = new AsyncDisposableStack();
  onTestFinished(() => opened.disposeAsync());
  const server = opened.use(await scriptedServer(script));
  const front = opened.use(await tlsFront(server.origin));
  const proxy = opened.use(await connectProxy(options));
  const origin = `https://127.0.0.1:${front.port}`;
  const [username = "", password = ""] = options.credentials?.split(":") ?? [];
  const { href: HTTPS_PROXY } = Object.assign(new URL(proxy.origin), { username, password });
  const service = opened.use(openTestService(origin, { maxConcurrent }, { proxy: proxyOf({ HTTPS_PROXY, ...env }) }));
  return { server, front, proxy, service };
}

test("a call goes through the proxy without a trace of it at the service", async () => {
  const { server, front, proxy, service } = await behindProxy(FINE, { credentials: "me:p@ss word" });
  expect((await service.call(READ, KEY, hangSignal())).value).toEqual({ fine: true });
  expect(proxy.tunnels).toEqual([`127.0.0.1:${front.port}`]);
  expect(proxy.requests).toEqual([]);
  expect(proxy.seen()).not.toMatch(/CANARY|(?<!proxy-)authorization|projects/i);
  expect(server.requests[0]?.headers.authorization).toBe(`Token ${KEY_TEXT}`);
  expect(JSON.stringify(server.requests[0]?.headers)).not.toContain("proxy");
});

test.each([
  ["other.example, 127.0.0.1", 0],
  ["*", 0],
  ["127.0.0.11,example.com", 1],
])("with NO_PROXY %j the service is called through %i tunnels", async (NO_PROXY, tunnels) => {
  const { proxy, service } = await behindProxy(FINE, {}, { env: { NO_PROXY } });
  await service.call(READ, KEY, hangSignal());
  expect(proxy.tunnels).toHaveLength(tunnels);
});

test("a service on this machine that speaks http is called directly", async () => {
  await using server = await scriptedServer(FINE);
  await using proxy = await connectProxy();
  const env = { HTTP_PROXY: proxy.origin, http_proxy: proxy.origin, HTTPS_PROXY: proxy.origin };
  await using service = openTestService(server.origin, {}, { proxy: proxyOf(env) });
  await service.call(READ, KEY, hangSignal());
  expect({ tunnels: proxy.tunnels, requests: proxy.requests }).toEqual({ tunnels: [], requests: [] });
});

test.each([undefined, "0"])(
  "a proxy that intercepts TLS with its own certificate gets no request, with NODE_TLS_REJECT_UNAUTHORIZED %s",
  async (setting) => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", setting);
    onTestFinished(() => void vi.unstubAllEnvs());
    await using eavesdropper = await scriptedServer(FINE);
    await using interceptor = await tlsFront(eavesdropper.origin, certificate(authority("of the company")));
    const { service } = await behindProxy(FINE, { tunnelPort: interceptor.port });
    await expect(service.call(READ, KEY, hangSignal())).rejects.toMatchObject({
      code: "rejected",
      message: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
      details: { sent: "no" },
    });
    expect(eavesdropper.requests).toEqual([]);
  },
);

test.each([
  [407, "rejected", /with status 407: it needs a user name and password/, 1],
  [403, "rejected", /the proxy \(HTTPS_PROXY\) refused the connection with status 403$/, 1],
  [502, "unavailable", /refused the connection with status 502/, 5],
  [429, "unavailable", /refused the connection with status 429/, 5],
])("the error names a proxy that answers %i", async (status, code, message, tunnels) => {
  const { server, proxy, service } = await behindProxy(FINE, { refuse: () => status });
  await expect(service.call(READ, KEY, hangSignal())).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
    details: { sent: "no" },
  });
  expect(proxy.tunnels).toHaveLength(tunnels);
  expect(server.requests).toEqual([]);
});

test("the error about an unreachable proxy says that nothing was sent", async () => {
  const proxy = proxyOf({ HTTPS_PROXY: "http://127.0.0.1:1" });
  await using service = openTestService("https://127.0.0.1:2", {}, { proxy });
  await expect(service.call(CREATE, KEY, hangSignal())).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("the connection failed (ECONNREFUSED)"),
    cause: expect.objectContaining({ message: "connect ECONNREFUSED 127.0.0.1:1" }),
    details: { sent: "no" },
  });
});

test("there are at most as many tunnels as concurrent calls", async () => {
  const { proxy, server, service } = await behindProxy(FINE, {}, { maxConcurrent: 2 });
  await Promise.all(Array.from({ length: 12 }, () => service.call(READ, KEY, hangSignal())));
  expect(server.requests).toHaveLength(12);
  expect(proxy.tunnels.length).toBeLessThanOrEqual(2);
});

test("each create is sent once, through a tunnel of its own", async () => {
  const { server, proxy, service } = await behindProxy(({ number }, response) => {
    if (number === 3) response.destroy();
    else answerJson(response, 200, {});
  });
  await service.call(READ, KEY, hangSignal());
  await service.call(CREATE, KEY, hangSignal());
  const lost = service.call(CREATE, KEY, hangSignal());
  await expect(lost).rejects.toMatchObject({ code: "unavailable", details: {} });
  expect(server.requests.map(({ method }) => method)).toEqual(["GET", "POST", "POST"]);
  expect(proxy.tunnels).toHaveLength(3);
});
