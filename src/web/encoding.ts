// The bytes of a page, made once for all visitors: many who read slowly share them.

import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Page } from "./page.ts";

export type EncodedPage = {
  readonly plain: Buffer;
  /** Of what the page shows; undefined if nobody asks for such a page again. */
  readonly etag: string | undefined;
  readonly compressed: () => Promise<Buffer>;
};

/** Compressing less than this gains nothing. */
const COMPRESSED_BYTES_MIN = 4_096;
const WITH_ETAG = /^(text\/html|application\/json)/;

const compress = promisify(gzip);
const encoded = new WeakMap<Page, EncodedPage>();

/** `scrub` hides secrets. The result is remembered as long as the page is. */
export function encodePage(page: Page, scrub: (text: string) => string): EncodedPage {
  const known = encoded.get(page);
  if (known) return known;
  const text = scrub(page.body);
  const plain = Buffer.from(text);
  let small: Promise<Buffer> | undefined;
  const made: EncodedPage = {
    plain,
    etag: page.status === 200 && WITH_ETAG.test(page.contentType) ? etagOf(text, page.asOf ?? []) : undefined,
    compressed: () => (small ??= compress(plain)),
  };
  encoded.set(page, made);
  return made;
}

/** Only large pages are compressed: the answer to a health check must not wait for the threads that compress. */
export function isCompressible({ plain }: EncodedPage, acceptEncoding: string | undefined): boolean {
  return plain.length >= COMPRESSED_BYTES_MIN && /\bgzip\b(?!\s*;\s*q=0(\.0+)?\s*(,|$))/i.test(acceptEncoding ?? "");
}

/** Weak, because the compressed bytes have it too, and because the time of a reading is left out. */
function etagOf(text: string, asOf: readonly string[]): string {
  const lasting = asOf.reduce((rest, moment) => rest.replaceAll(moment, ""), text);
  return `W/"${createHash("sha256").update(lasting).digest("base64url").slice(0, 22)}"`;
}
