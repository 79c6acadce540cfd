// How calls end on connections that break, stall or cannot be trusted.

import https from "node:https";
import type net from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { certificate } from "../support/certificates.ts";
import { listen, rawServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService, READ } from "./open-test-service.ts";

const BODY = JSON.stringify({ start: "2026-03-01", end: "2026-03-01", results: [{ requests: 12 }] });
const HEAD = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n`;
const CHUNKED_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";

type Fault = (socket: net.Socket) => void;

test.each<[string, Fault]>([
  ["ends before the headers", (socket) => socket.end()],
  ["is reset before the headers", (socket) => socket.resetAndDestroy()],
  ["ends within the headers", (socket) => socket.end(HEAD.slice(0, 30))],
  ["ends after the headers", (socket) => socket.end(HEAD)],
  ["ends within the body", (socket) => socket.end(HEAD + BODY.slice(0, 40))],
  ["ends one byte early", (socket) => socket.end((HEAD + BODY).slice(0, -1))],
  ["ends within a chunk", (socket) => socket.end(`${CHUNKED_HEAD}ff\r\n${BODY}`)],
  ["ends before the last chunk", (socket) => socket.end(`${CHUNKED_HEAD}${BODY.length.toString(16)}\r\n${BODY}\r\n`)],
  ["is not HTTP", (socket) => socket.end("220 mail.example ESMTP\r\n")],
  ["is an upgrade", (socket) => socket.end("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")],
])("after an answer that %s the whole answer is requested again", async (_name, fault) => {
  const asked: string[] = [];
  await using server = await rawServer((socket, number, request) => {
    asked.push(request);
    if (number === 1) fault(socket);
    else socket.end(HEAD + BODY);
  });
  await using service = openTestService(server.origin);
  expect((await service.call(READ, KEY, limit())).value).toEqual(JSON.parse(BODY));
  expect(asked).toHaveLength(2);
  expect(asked.join("")).not.toMatch(/^range:/im);
});

test("an answer without a length that ends early is a bad answer", async () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
  await using server = await rawServer((socket) => socket.end(head + BODY.slice(0, 40)));
  await using service = openTestService(server.origin);
  await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({ code: "bad_answer" });
});

test("endless headers are cut off", async () => {
  await using server = await rawServer((socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}`));
  await using service = openTestService(server.origin);
  await expect(service.call({ ...READ, retry: false }, KEY, limit())).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("UND_ERR_HEADERS_OVERFLOW"),
  });
});

test("an attempt whose TLS handshake does not end stops at its time limit", async () => {
  // The server accepts the connection and sends nothing, so the handshake does not end.
  await using server = await rawServer(() => undefined);
  await using service = openTestService(server.origin.replace("http:", "https:"), { timeoutSeconds: 0.05 });
  await expect(service.call({ ...READ, retry: false }, KEY, limit())).rejects.toMatchObject({
    message: expect.stringContaining("no whole answer within 0.05 s"),
  });
});

test("an abort ends a call during the TLS handshake", async () => {
  const controller = new AbortController();
  await using server = await rawServer(() => controller.abort("enough"));
  await using service = openTestService(server.origin.replace("http:", "https:"));
  await expect(service.call(READ, KEY, controller.signal)).rejects.toBe("enough");
});

test("HTTP/2 is not offered, because over it undici may send a request twice", async () => {
  const { promise: hello, resolve } = Promise.withResolvers<string>();
  await using server = await rawServer((socket, _number, request) => {
    resolve(request);
    socket.destroy();
  });
  await using service = openTestService(server.origin.replace("http:", "https:"));
  await expect(service.call({ ...READ, retry: false }, KEY, limit())).rejects.toMatchObject({ code: "unavailable" });
  expect(await hello).toContain("\x08http/1.1");
  expect(await hello).not.toContain("\x02h2");
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
    await expect(service.call(READ, KEY, limit())).rejects.toMatchObject({
      code: "rejected",
      message: expect.stringContaining("DEPTH_ZERO_SELF_SIGNED_CERT"),
      details: { sent: "no" },
    });
    expect(service.sleeps).toEqual([]);
    expect(requests).toBe(0);
  },
);
