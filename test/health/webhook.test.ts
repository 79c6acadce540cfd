// How the webhook and the dead man's switch are called. A local server answers as each test says.

import tls from "node:tls";
import { expect, test } from "vitest";
import { errorText } from "../../src/errors.ts";
import { proxyOf } from "../../src/proxy.ts";
import { Secret } from "../../src/secret.ts";
import { callReceiver, type Receiver } from "../../src/worker/webhook.ts";
import { AUTHORITY, connectProxy, tlsFront } from "../support/connect-proxy.ts";
import { answering, rawServer, type Script, scriptedServer } from "../support/scripted-server.ts";

const TIMEOUT_MS = 30_000;
const NEVER = new AbortController().signal;
const PATH = "/services/open-sesame?token=abc";

function webhookAt(origin: string): Receiver {
  return { field: "notify.webhook", address: new Secret(`${origin}${PATH}`) };
}

/** Posts to a server with this script. Returns the requests that the server got, and the error; "" if there was none. */
async function postTo(script: Script) {
  await using server = await scriptedServer(script);
  const error = await failureOf(callReceiver(webhookAt(server.origin), "hello", NEVER, TIMEOUT_MS));
  return { error, requests: server.requests };
}

const failureOf = (call: Promise<void>) => call.then(() => "", errorText);

test("a notification is posted as JSON with the text and nothing else", async () => {
  const { error, requests } = await postTo(answering(200, "ok"));

  expect(error).toBe("");
  expect(requests).toMatchObject([
    { method: "POST", target: PATH, body: '{"text":"hello"}', headers: { "content-type": "application/json" } },
  ]);
});

test.each([
  [503, "notify.webhook answered 503"],
  [404, "notify.webhook answered 404"],
  [302, "notify.webhook answered 302, a redirect, which is not followed: configure the address it leads to"],
])("a call that is answered with %i fails without a second attempt", async (status, message) => {
  const { error, requests } = await postTo(answering(status, "open-sesame", { location: "http://127.0.0.1:1/x" }));

  expect({ error, count: requests.length }).toEqual({ error: message, count: 1 });
});

test("the error about a receiver that can't be reached has only its configuration path and the reason", async () => {
  const error = await failureOf(callReceiver(webhookAt("http://127.0.0.1:1"), "hello", NEVER, TIMEOUT_MS));
  expect(error).toBe("notify.webhook can't be reached: ECONNREFUSED");
});

test("a TLS handshake without an answer ends with the time limit", async () => {
  // Accepts the connection and never answers the handshake.
  await using server = await rawServer(() => {});
  const address = new Secret(server.origin.replace("http:", "https:"));

  expect(await failureOf(callReceiver({ field: "notify.deadMan", address }, undefined, NEVER, 100))).toBe(
    "notify.deadMan did not answer within 0.1 s",
  );
});

test("the proxy learns only the host of the address", async () => {
  tls.setDefaultCACertificates([AUTHORITY.cert]);
  await using server = await scriptedServer(answering(200, "ok"));
  await using front = await tlsFront(server.origin);
  await using proxy = await connectProxy({ credentials: "me:password" });
  const receiver = {
    ...webhookAt(`https://127.0.0.1:${front.port}`),
    proxy: proxyOf({ HTTPS_PROXY: `http://me:password@127.0.0.1:${proxy.port}` }),
  };
  await callReceiver(receiver, "hello", NEVER, TIMEOUT_MS);
  await callReceiver(receiver, undefined, NEVER, TIMEOUT_MS);
  expect(server.requests).toMatchObject([{ body: '{"text":"hello"}' }, { method: "GET", target: PATH }]);
  expect(proxy.tunnels).toHaveLength(2);
  expect(proxy.requests).toEqual([]);
  expect(proxy.seen()).not.toMatch(/sesame|hello/);
});

test("the error about a proxy that refuses the credentials names the proxy without its password", async () => {
  await using proxy = await connectProxy({ credentials: "someone:else" });
  const env = { HTTPS_PROXY: `http://me:password@127.0.0.1:${proxy.port}` };
  const receiver = { ...webhookAt("https://127.0.0.1:1"), proxy: proxyOf(env) };
  expect(await failureOf(callReceiver(receiver, "x", NEVER, TIMEOUT_MS))).toBe(
    "notify.webhook can't be reached: the proxy (HTTPS_PROXY) refused the connection with status 407: it needs a user name and password, or those given are wrong",
  );
});

test("a call succeeds when the head of an answer has come, even if its body never ends", async () => {
  const endless = await postTo((_, response) => {
    response.writeHead(200);
    const flow = () => void (response.writable && response.write("x".repeat(65_536)));
    response.on("drain", flow);
    flow();
  });
  const unfinished = await postTo((_, response) => void response.writeHead(200).write("o"));

  expect([endless.error, unfinished.error]).toEqual(["", ""]);
});

test("an abort of the signal ends the call", async () => {
  const stop = new AbortController();
  await using server = await scriptedServer(() => stop.abort(new Error("the worker stops")));

  const posting = callReceiver(webhookAt(server.origin), "hello", stop.signal, TIMEOUT_MS);
  await expect(posting).rejects.toThrow("the worker stops");
});
