// What the service says in an answer that is not a success, made fit for a log line and an error message. Pure.

import { z } from "zod";
import { printable } from "../printable.ts";
import { Scrubber, type Secret } from "../secret.ts";
import { isFreeOf } from "../secret-search.ts";
import type { Headers } from "./retry-after.ts";

/** Replaces the secrets that may not leave the process. */
export type Hide = (text: string) => string;

/** Hides the key of a call in any encoding, because the service may repeat it, and everything that `scrub` hides. */
export function hider(key: Secret, scrub: Hide = (text) => text): Hide {
  const scrubber = new Scrubber();
  scrubber.add(key);
  return (text) => {
    const hidden = scrub(scrubber.scrub(text));
    return isFreeOf(hidden, key.reveal()) ? hidden : "(not shown, as it may hold the key)";
  };
}

/** For an answer that may contain, anywhere, a secret that the scrubber does not know yet. */
export const HIDE_ALL: Hide = () => "";

export type Words = {
  readonly text: string;
  readonly requestId: string | undefined;
  /** A missing scope, where the service quotes one: `Check that your account has the 'keys:write' scope`. */
  readonly scope: string | undefined;
};

const LENGTH_MAX = 300;
const SEARCHED_LENGTH_MAX = 2_000;
const REQUEST_ID_LENGTH_MAX = 100;
/** Where the title of an HTML page is looked for. */
const TITLE_WITHIN = 4_096;

const Text = z.string().min(1).optional().catch(undefined);
/** Accepts every error body seen so far; every member is optional. `error` is a sentence, or an object that contains one. */
const ErrorBody = z.object({
  error: z
    .union([z.string().min(1), z.object({ message: Text }).transform(({ message }) => message)])
    .optional()
    .catch(undefined),
  category: Text,
  err_code: Text,
  error_code: Text,
  message: Text,
  err_msg: Text,
  details: Text,
  request_id: Text,
});

/** `body` is undefined when it was cut or too long: the end of a part could be half of a key, which nothing recognises. */
export function serviceWords(headers: Headers, body: Uint8Array | undefined, hide: Hide): Words {
  const said = saidBy(headers, body);
  const text = harmless(said.text, hide, LENGTH_MAX) || "(its words are not shown, as they may hold a new key)";
  const requestId = requestIdOf(headers, hide) ?? said.requestId;
  return {
    text,
    requestId: requestId === undefined ? undefined : harmless(requestId, hide, REQUEST_ID_LENGTH_MAX) || undefined,
    scope: /'([\w-]+(?::[\w-]+)+)'/.exec(text)?.[1],
  };
}

export function requestIdOf(headers: Headers, hide: Hide): string | undefined {
  const id = headers["dg-request-id"];
  return typeof id === "string" ? harmless(id, hide, REQUEST_ID_LENGTH_MAX) || undefined : undefined;
}

/** One line without control or direction characters, without secrets, and not longer than `lengthMax`. */
export function harmless(text: string, hide: Hide, lengthMax: number): string {
  // The text is cut before the search because a search of a long text is slow, and to its final length only after it because half
  // a key might not be recognised.
  const characters = [...hide(printable(text.slice(0, SEARCHED_LENGTH_MAX)))];
  return characters.length <= lengthMax ? characters.join("") : `${characters.slice(0, lengthMax).join("")}…`;
}

function saidBy(headers: Headers, body: Uint8Array | undefined): { text: string; requestId?: string | undefined } {
  if (body === undefined) return { text: "(a body that was cut or too long)" };
  if ((headers["content-encoding"] ?? "identity") !== "identity") return { text: "(a compressed body)" };
  if (body.length === 0) return { text: "(no body)" };
  const text = new TextDecoder().decode(body);
  if (isHtml(headers) || /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(text)) return { text: htmlWords(text) };
  if (!/^\s*[{[]/.test(text)) return { text };

  const said = ErrorBody.safeParse(parseLoosely(text)).data ?? {};
  const code = said.err_code ?? said.error_code ?? said.category;
  const sentence = [said.message ?? said.err_msg ?? said.error, said.details]
    .filter((part) => part !== undefined)
    .join(" ");
  const words = [code, sentence].filter((part) => part !== undefined && part !== "").join(": ");
  // JSON of another shape is not quoted: it may be anything, and hold anything.
  return { text: words === "" ? "(a body without a message)" : words, requestId: said.request_id };
}

function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isHtml(headers: Headers): boolean {
  return /\bhtml\b/i.test(String(headers["content-type"]));
}

function htmlWords(text: string): string {
  const title = /<title[^>]{0,100}>([^<]{1,200})<\/title/i.exec(text.slice(0, TITLE_WITHIN))?.[1]?.trim();
  return title === undefined || title === "" ? "(an HTML page)" : `(an HTML page, "${title}")`;
}
