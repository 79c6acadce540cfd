// How much a browser receives for a page, with all that the page loads.

import http from "node:http";
import { expect, test } from "vitest";
import type { PageData } from "../../../src/web/dashboard/pages.ts";
import { PAGES } from "../../../src/web/url.ts";
import { makeAnswer } from "../../facts/sample-facts.ts";
import { openTestMonitor } from "../test-monitor.ts";
import { pageOf } from "./sample-pages.ts";

const KILOBYTES_MAX = 250;

/** The body as it is sent to a browser, which asks for gzip. */
async function receive(url: string): Promise<{ readonly bytes: number; readonly encoding: string | undefined }> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  http.get(url, { headers: { "accept-encoding": "gzip, deflate, br, zstd" } }, resolve).on("error", reject);
  const response = await promise;
  let bytes = 0;
  for await (const chunk of response) bytes += chunk.length;
  expect([url, response.statusCode]).toEqual([url, 200]);
  return { bytes, encoding: response.headers["content-encoding"] };
}

test("each page, with its script and style, is at most 250 kB for a browser", async () => {
  // More groups than the page Usage shows by name.
  const groups = Array.from({ length: 40 }, (_, i) => ({ group: `model-${i}`, amount: `${i * 1234.567}` }));
  const made = { overview: {}, usage: { answer: makeAnswer({ groups }) }, health: {}, run: {} };
  const served = Object.entries(made).map(([name, data]) => {
    const page = name as keyof PageData;
    return [PAGES[page].path, async () => pageOf(page, data)] as const;
  });
  await using monitor = await openTestMonitor({ pages: Object.fromEntries(served) });
  const paths = Object.values(PAGES).map(({ path }) => path);
  for (const path of paths) {
    const url = new URL(path, monitor.url);
    const text = await (await fetch(url)).text();
    const loaded = [...text.matchAll(/<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?!data:)([^"]*)"/g)];
    const urls = [url, ...loaded.map(([, to = ""]) => new URL(to, url))];
    expect(urls.length, path).toBeGreaterThan(1);
    const received = await Promise.all(urls.map((one) => receive(one.href)));
    expect(received.map(({ encoding }) => encoding)).toEqual(urls.map(() => "gzip"));
    const kilobytes = received.reduce((sum, { bytes }) => sum + bytes, 0) / 1000;
    expect(kilobytes, path).toBeLessThanOrEqual(KILOBYTES_MAX);
    // Less would mean that the script was not counted.
    expect(kilobytes, path).toBeGreaterThan(50);
  }
});
