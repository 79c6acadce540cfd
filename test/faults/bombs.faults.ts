// Small answers that decompress to very large ones (bombs), and answers without an end: they take hardly any memory, and are refused.

import type { ServerResponse } from "node:http";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { scriptedServer } from "../support/scripted-server.ts";
import { peakMemory } from "./memory.ts";
import { openSlots, slotOf } from "./slots.ts";

/** The most that the program holds of an answer, and as much again for memory that is not collected yet. */
const PEAK_MIB_MAX = 64;

type Heavy = (response: ServerResponse) => void;

const HEAVY: Readonly<Record<string, Heavy>> = {
  ...Object.fromEntries(
    Object.entries(bombs()).flatMap(([encoding, bytes]) => [
      [
        `a bomb of ${encoding}`,
        (response) =>
          response.writeHead(200, { "content-type": "application/json", "content-encoding": encoding }).end(bytes),
      ],
      [
        `a bomb of ${encoding} without its content-encoding`,
        (response) => response.writeHead(200, { "content-type": "application/json" }).end(bytes),
      ],
    ]),
  ),
  "a body without an end": (response) => endless(response, 200, "application/json"),
  "a body of single bytes": (response) => {
    response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    response.socket?.end(Buffer.from(`${"1\r\n \r\n".repeat(2 << 20)}0\r\n\r\n`));
  },
  "an error response without an end": (response) => endless(response, 500, "text/html"),
  "a page without an end": (response) => endless(response, 200, "text/html"),
  "a body with a content-length of a terabyte": (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 2 ** 40 });
    endless(response);
  },
};

/** Answers within every limit of length. They are held in memory as a whole, and parsing them takes some more. */
const LARGE: Readonly<Record<string, () => string>> = {
  "a body of very many small objects": () => `{"results":[${"{},".repeat(10 << 20)}{}]}`,
  "a body of many small objects": () => `{"results":[${"{},".repeat(1_900_000)}{}]}`,
  "a body of many numbers": () => `{"results":[],"more":[${"1e1,".repeat(1_900_000)}1]}`,
  "a body of many numbers that no double holds": () => `{"results":[],"more":[${"1e999,".repeat(1_900_000)}1]}`,
  "a body of one text": () => `{"results":[],"more":"${"é".repeat(15 << 20)}"}`,
};
const LARGE_MIB_MAX = 512;

function endless(response: ServerResponse, status?: number, type?: string): void {
  if (status !== undefined) response.writeHead(status, { "content-type": type ?? "" });
  const chunk = Buffer.alloc(1 << 16, " ");
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", more);
  more();
}

test.for(Object.entries(HEAVY))("%s takes hardly any memory", { timeout: 120_000 }, async ([name, fault]) => {
  expect(await memoryOver(name, fault)).toBeLessThanOrEqual(PEAK_MIB_MAX);
});

test.for(Object.entries(LARGE))("%s takes a limited amount of memory", { timeout: 120_000 }, async ([name, body]) => {
  const fault: Heavy = (response) => void response.writeHead(200, { "content-type": "application/json" }).end(body());
  expect(await memoryOver(name, fault)).toBeLessThanOrEqual(LARGE_MIB_MAX);
});

/** How much the program's memory grows after its first request, in MiB. The answer must be refused. */
async function memoryOver(name: string, fault: Heavy): Promise<number> {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  await using server = await scriptedServer(({ target }, response) => {
    resolve();
    if (slotOf(target) === undefined) response.writeHead(404).end();
    else fault(response);
  });
  await using slots = await openSlots({ serviceUrl: server.origin, names: ["heavy"], service: { timeoutSeconds: 20 } });
  const program = slots.start();
  const { baseKib, peakKib } = await peakMemory(program.pid ?? 0, asked);
  const { status, durationMs, stderr } = await program.ended;
  const mib = Math.round((peakKib - baseKib) / 1024);
  process.stdout.write(`${name}: ${mib} MiB over ${Math.round(baseKib / 1024)} MiB, ${Math.round(durationMs)} ms\n`);
  expect([status, [...(await slots.states()).values()]], stderr).toMatchObject([1, [{ status: "failed" }]]);
  return mib;
}

/** 256 MiB of spaces, compressed in each of three ways. */
function bombs(): Readonly<Record<string, Buffer>> {
  const spaces = Buffer.alloc(256 << 20, " ");
  return {
    gzip: gzipSync(spaces, { level: 9 }),
    br: brotliCompressSync(spaces, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
    zstd: zstdCompressSync(spaces),
  };
}
