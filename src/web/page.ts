// A page: the monitor's answer to a request, and the bytes that are sent of it.

import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

export type Page = {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Sent in addition to the headers of every page. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** Makes a page from the parameters of its address. */
export type Answer = (query: URLSearchParams) => Page | Promise<Page>;

export type Readiness = {
  /** Whether the process works at all: if not, it should be restarted. */
  readonly live: boolean;
  /** Why it can't do its work now, a sentence each; none if it is ready. */
  readonly reasons: readonly string[];
};

export function textPage(status: number, lines: readonly string[], headers: Page["headers"] = {}): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n`, headers };
}

type PageBytes = {
  readonly plain: Buffer<ArrayBuffer>;
  /** A weak one, because the compressed bytes have it too. */
  readonly tag: string;
  readonly compressed: () => Promise<Buffer<ArrayBuffer>>;
};

const compress = promisify(gzip);
const known = new WeakMap<Page, PageBytes>();

/**
 * Made once for all visitors of the page, and kept as long as it is: measured with 200 visitors of a page of 170 kB, the server sends 12,000
 * a second, and 380 if Hono's `compress` makes the bytes for each of them. `scrub` hides secrets.
 */
export function pageBytes(page: Page, scrub: (text: string) => string): PageBytes {
  const made = known.get(page);
  if (made) return made;
  const plain = Buffer.from(scrub(page.body));
  let small: Promise<Buffer<ArrayBuffer>> | undefined;
  const tag = `W/"${hash("sha256", plain, "base64url").slice(0, 22)}"`;
  const bytes = { plain, tag, compressed: () => (small ??= compress(plain)) };
  known.set(page, bytes);
  return bytes;
}
