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

/** A server that answers with the bytes of the script, and a call to it. */
async function open(script: Parameters<typeof rawServer>[0], timeoutSeconds = 30, scheme = "http:") {
  const server = await rawServer(script);
  const service = openTestService(server.origin.replace("http:", scheme), { timeoutSeconds });
  onTestFinished(async () => {
    await service.close();
    await server[Symbol.asyncDispose]();
  });
  const read = (retry = true, signal = limit()) => service.call({ ...READ, retry }, KEY, signal);
  return { read };
}

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
  await expect(read(false)).rejects.toMatchObject({ code: "unavailable", message });
});

test("an attempt whose TLS handshake does not end stops at its time limit", async () => {
  // The server accepts the connection and sends nothing, so the handshake does not end.
  const { read } = await open(() => undefined, 0.05, "https:");
  await expect(read(false)).rejects.toThrow("no whole answer within 0.05 s");
});

test("an abort ends a call during the TLS handshake", async () => {
  const controller = new AbortController();
  const { read } = await open(() => controller.abort("enough"), 30, "https:");
  await expect(read(true, controller.signal)).rejects.toBe("enough");
});

test("HTTP/2 is not offered, because over it undici may send a request twice", async () => {
  const { promise: hello, resolve } = Promise.withResolvers<string>();
  const answer: Parameters<typeof rawServer>[0] = (socket, _number, request) => {
    resolve(request);
    socket.destroy();
  };
  const { read } = await open(answer, 30, "https:");
  await expect(read(false)).rejects.toMatchObject({ code: "unavailable" });
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
