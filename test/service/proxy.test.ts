// Calls to the service through a proxy that makes tunnels (CONNECT), as companies have them. Aborts and the limit of
// concurrent calls hold in a tunnel as they do for direct calls.

import tls from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { proxyOf } from "../../src/proxy.ts";
import type { ServiceCall } from "../../src/service/service.ts";
import { authority, certificate } from "../support/certificates.ts";
import { AUTHORITY, connectProxy, type ProxyOptions, tlsFront } from "../support/connect-proxy.ts";
import { answeringJson, answerJson, type Script, scriptedServer } from "../support/scripted-server.ts";
import { KEY, KEY_TEXT, limit, openTestService, READ } from "./open-test-service.ts";

tls.setDefaultCACertificates([AUTHORITY.cert]);

const CREATE: ServiceCall = {
  operation: "create_key",
  method: "POST",
  path: ["v1", "projects", "p1", "keys"],
  body: {},
  retry: false,
};
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

test("a call goes through the proxy, which learns the host and port of the service and nothing else", async () => {
  const { server, front, proxy, service } = await behindProxy(FINE);
  expect((await service.call(READ, KEY, limit())).value).toEqual({ fine: true });
  expect(proxy.tunnels).toEqual([`127.0.0.1:${front.port}`]);
  expect(proxy.requests).toEqual([]);
  expect(proxy.seen()).not.toMatch(/CANARY|authorization|projects/i);
  expect(server.requests[0]?.headers.authorization).toBe(`Token ${KEY_TEXT}`);
});

test("the proxy's user name and password are sent to the proxy and never to the service", async () => {
  const { server, service } = await behindProxy(FINE, { credentials: "me:p@ss word" });
  await service.call(READ, KEY, limit());
  expect(JSON.stringify(server.requests[0]?.headers)).not.toContain("proxy");
});

test.each([
  ["other.example, 127.0.0.1", 0],
  ["*", 0],
  ["127.0.0.11,example.com", 1],
])("with NO_PROXY %j the service is called through %i tunnels", async (NO_PROXY, tunnels) => {
  const { proxy, service } = await behindProxy(FINE, {}, { env: { NO_PROXY } });
  await service.call(READ, KEY, limit());
  expect(proxy.tunnels).toHaveLength(tunnels);
});

test("a service on this machine that speaks http is called directly", async () => {
  await using server = await scriptedServer(FINE);
  await using proxy = await connectProxy();
  const env = { HTTP_PROXY: proxy.origin, http_proxy: proxy.origin, HTTPS_PROXY: proxy.origin };
  await using service = openTestService(server.origin, {}, { proxy: proxyOf(env) });
  await service.call(READ, KEY, limit());
  expect({ tunnels: proxy.tunnels, requests: proxy.requests }).toEqual({ tunnels: [], requests: [] });
});

test.each([undefined, "0"])(
  "a proxy that intercepts TLS with its own certificate gets no request, with NODE_TLS_REJECT_UNAUTHORIZED %s",
  async (setting) => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", setting);
    onTestFinished(() => void vi.unstubAllEnvs());
    await using eavesdropper = await scriptedServer(FINE);
    await using interceptor = await tlsFront(eavesdropper.origin, certificate({ by: authority("of the company") }));
    const { service } = await behindProxy(FINE, { tunnelPort: interceptor.port });
    await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
      code: "rejected",
      message: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
      details: { sent: "no" },
    });
    expect(eavesdropper.requests).toEqual([]);
  },
);

test.each([
  [407, "rejected", /it answered 407: it needs a user name and password/, 1],
  [403, "rejected", /the proxy \(HTTPS_PROXY\) makes no connection, it answered 403$/, 1],
  [502, "unavailable", /makes no connection, it answered 502/, 5],
])(
  "the error names a proxy that answers %i, and says that nothing was sent",
  async (status, code, message, tunnels) => {
    const { server, proxy, service } = await behindProxy(FINE, { refuse: () => status });
    await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
      details: { sent: "no" },
    });
    expect(proxy.tunnels).toHaveLength(tunnels);
    expect(server.requests).toEqual([]);
  },
);

test("the error names a proxy that can't be reached, and says that nothing was sent", async () => {
  const proxy = proxyOf({ HTTPS_PROXY: "http://127.0.0.1:1" });
  await using service = openTestService("https://127.0.0.1:2", {}, { proxy });
  await expect(service.call(CREATE, KEY, limit())).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("the connection failed (ECONNREFUSED)"),
    cause: expect.objectContaining({ message: "connect ECONNREFUSED 127.0.0.1:1" }),
    details: { sent: "no" },
  });
});

test("an abort ends a call that still waits for its tunnel", async () => {
  const controller = new AbortController();
  const { service } = await behindProxy(FINE, {
    refuse() {
      controller.abort("enough");
      return undefined;
    },
  });
  await expect(service.call(READ, KEY, controller.signal)).rejects.toBe("enough");
});

test("there are at most as many tunnels as concurrent calls, and they are reused", async () => {
  const { proxy, server, service } = await behindProxy(FINE, {}, { maxConcurrent: 2 });
  await Promise.all(Array.from({ length: 12 }, () => service.call(READ, KEY, limit())));
  expect(server.requests).toHaveLength(12);
  expect(proxy.tunnels.length).toBeLessThanOrEqual(2);
});

test("each create has a tunnel of its own, and is sent only once even if the tunnel breaks", async () => {
  const { server, proxy, service } = await behindProxy(({ number }, response) => {
    if (number === 3) response.destroy();
    else answerJson(response, 200, {});
  });
  await service.call(READ, KEY, limit());
  await service.call(CREATE, KEY, limit());
  const lost = service.call(CREATE, KEY, limit());
  await expect(lost).rejects.toMatchObject({ code: "unavailable", details: {} });
  expect(server.requests.map(({ method }) => method)).toEqual(["GET", "POST", "POST"]);
  expect(proxy.tunnels).toHaveLength(3);
});
