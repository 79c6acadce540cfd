// How the addresses of notices are called, at a local server that answers as each test tells it.

import tls from "node:tls";
import { expect, test } from "vitest";
import { ping, postText, type Receiver, type WebhookLimits } from "../../src/health/webhook.ts";
import { proxyOf } from "../../src/proxy.ts";
import { Secret } from "../../src/secret.ts";
import { AUTHORITY, connectProxy, tlsFront } from "../support/connect-proxy.ts";
import { answer, rawServer, type Script, scriptedServer } from "../support/scripted-server.ts";

const FAST: WebhookLimits = { timeoutMs: 30_000, delayMs: 1 };
const NEVER = new AbortController().signal;
const PATH = "/services/open-sesame?token=abc";

function webhookAt(origin: string): Receiver {
  return { path: "notify.webhook", address: new Secret(`${origin}${PATH}`) };
}

/** Posts to a server that answers so, and says what it was asked and how it ended. */
async function posted(script: Script, limits = FAST) {
  await using server = await scriptedServer(script);
  const error = await failureOf(postText(webhookAt(server.origin), "hello", NEVER, limits));
  return { error, requests: server.requests };
}

async function failureOf(call: Promise<void>): Promise<string> {
  return call.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

test("a notice is posted as text and nothing else", async () => {
  const { error, requests } = await posted((_, response) => answer(response, 200, "ok"));

  expect(error).toBe("");
  expect(requests).toMatchObject([
    { method: "POST", target: PATH, body: '{"text":"hello"}', headers: { "content-type": "application/json" } },
  ]);
});

test("a ping is a GET without a body", async () => {
  await using server = await scriptedServer((_, response) => answer(response, 204, ""));
  await ping({ ...webhookAt(server.origin), path: "notify.deadMan" }, NEVER, FAST);

  expect(server.requests).toMatchObject([{ method: "GET", target: PATH, body: "" }]);
});

test.each([429, 500, 503])("after %i it is tried again", async (status) => {
  const { error, requests } = await posted(({ number }, response) => answer(response, number < 3 ? status : 200, ""));

  expect({ error, count: requests.length }).toEqual({ error: "", count: 3 });
});

test.each([
  [503, 3, "notify.webhook answered 503"],
  [400, 1, "notify.webhook answered 400"],
  [404, 1, "notify.webhook answered 404"],
  [302, 1, "notify.webhook answered 302, which leads elsewhere and is not followed: expected the address it leads to"],
])("with nothing but %i it fails after %i attempts", async (status, count, message) => {
  const { error, requests } = await posted((_, response) =>
    answer(response, status, "open-sesame", { location: "http://127.0.0.1:1/elsewhere" }),
  );

  expect({ error, count: requests.length }).toEqual({ error: message, count });
});

test("a receiver that can't be reached is named by its path and the reason only", async () => {
  const error = await failureOf(postText(webhookAt("http://127.0.0.1:1"), "hello", NEVER, FAST));

  expect(error).toBe("notify.webhook can't be reached: ECONNREFUSED");
});

test("a connection that is cut is tried again", async () => {
  await using server = await rawServer((socket, number) => {
    if (number < 3) socket.destroy();
    else socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  });
  await postText(webhookAt(server.origin), "hello", NEVER, FAST);

  expect(server.connections()).toBe(3);
});

test("all attempts together have one time limit", async () => {
  const startedMs = performance.now();
  const { error, requests } = await posted(() => {}, { timeoutMs: 1_000, delayMs: 1 });

  expect({ error, count: requests.length }).toEqual({ error: "notify.webhook did not answer within 1 s", count: 1 });
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

test("a connection that is never made ends with the time limit", async () => {
  // Takes the connection and leaves the handshake unanswered.
  await using server = await rawServer(() => {});
  const address = new Secret(server.origin.replace("http:", "https:"));
  const limits = { timeoutMs: 100, delayMs: 1 };

  expect(await failureOf(ping({ path: "notify.deadMan", address }, NEVER, limits))).toBe(
    "notify.deadMan did not answer within 0.1 s",
  );
});

test("a pause between attempts ends with the time limit, and the last failure is reported", async () => {
  const { error } = await posted((_, response) => answer(response, 503, ""), { timeoutMs: 2_000, delayMs: 60_000 });

  expect(error).toBe("notify.webhook answered 503");
});

test("it goes through the proxy, which learns nothing of the address but its host", async () => {
  tls.setDefaultCACertificates([AUTHORITY.cert]);
  await using server = await scriptedServer((_, response) => answer(response, 200, "ok"));
  await using front = await tlsFront(server.origin);
  await using proxy = await connectProxy({ credentials: "me:password" });
  const to = {
    ...webhookAt(`https://127.0.0.1:${front.port}`),
    proxy: proxyOf({ HTTPS_PROXY: `http://me:password@127.0.0.1:${proxy.port}` }),
  };
  await postText(to, "hello", NEVER, FAST);
  await ping(to, NEVER, FAST);
  expect(server.requests).toMatchObject([{ body: '{"text":"hello"}' }, { method: "GET", target: PATH }]);
  expect(proxy.tunnels).toHaveLength(2);
  expect(proxy.requests).toEqual([]);
  expect(proxy.seen()).not.toMatch(/sesame|hello/);
});

test("a proxy that takes nobody is named, without its password", async () => {
  await using proxy = await connectProxy({ credentials: "someone:else" });
  const env = { HTTPS_PROXY: `http://me:password@127.0.0.1:${proxy.port}` };
  const error = await failureOf(
    postText({ ...webhookAt("https://127.0.0.1:1"), proxy: proxyOf(env) }, "x", NEVER, FAST),
  );
  expect(error).toBe(
    `notify.webhook can't be reached: the proxy at 127.0.0.1:${proxy.port} (HTTPS_PROXY) asks for a user name and password that it takes (407)`,
  );
});

test("an answer without an end does not keep it", async () => {
  const { error } = await posted((_, response) => {
    response.writeHead(200);
    const flow = () => void (response.writable && response.write("x".repeat(65_536)));
    response.on("drain", flow);
    flow();
  });

  expect(error).toBe("");
});

test("it ends with the signal", async () => {
  const stop = new AbortController();
  await using server = await scriptedServer(() => stop.abort(new Error("the worker stops")));

  await expect(postText(webhookAt(server.origin), "hello", stop.signal, FAST)).rejects.toThrow("the worker stops");
});
