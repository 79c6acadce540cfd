// A page: the monitor's answer to a request, and the bytes that are sent of it.

import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

export type Page = {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** The texts in the body that tell when it was read. A page that differs in nothing else is no news. */
  readonly asOf?: readonly string[];
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
  readonly compressed: () => Promise<Buffer<ArrayBuffer>>;
  readonly etag: string;
};

const compress = promisify(gzip);
const known = new WeakMap<Page, PageBytes>();

/**
 * Made once for all visitors of the page, and kept as long as it is: measured with 200 visitors of a page of 170 kB, the server sends 12,000
 * a second, and 380 if Hono's `compress` makes the bytes for each of them. `scrub` hides secrets.
 */
export function pageBytes(page: Page, scrub: (text: string) => string): PageBytes {
  const made = known.get(page) ?? makeBytes(page, scrub(page.body));
  known.set(page, made);
  return made;
}

/** The tag is weak, because the compressed bytes have it too, and because the time of a reading is left out. */
function makeBytes({ asOf = [] }: Page, text: string): PageBytes {
  const plain = Buffer.from(text);
  const lasting = asOf.reduce((rest, moment) => rest.replaceAll(moment, ""), text);
  const etag = `W/"${createHash("sha256").update(lasting).digest("base64url").slice(0, 22)}"`;
  let small: Promise<Buffer<ArrayBuffer>> | undefined;
  return { plain, etag, compressed: () => (small ??= compress(plain)) };
}
