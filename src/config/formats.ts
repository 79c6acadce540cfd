// What an address that receives a key, and a secret itself, must look like, and what is wrong with one that does not. Pure.

import { describeValue, SCHEME_AND_KEY } from "./messages.ts";

/** What is wrong with the address, or undefined. An address that may hold a password is never repeated. */
export function baseUrlProblem(text: string): string | undefined {
  if (/^\w+:\/\/[^/]*@/.test(text)) {
    return "a name or password in the address is refused (and not shown here): remove what stands before the @";
  }
  if (text.includes("?") || text.includes("#")) return `expected an address without "?" and "#" ${BASE_URL_EXAMPLE}`;
  // A URL parser takes other slashes, spaces and line breaks for what they are not.
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) {
    return `expected an https address ${BASE_URL_EXAMPLE}${text.includes("@") ? "" : `; got ${describeValue(text)}`}`;
  }

  const url = new URL(text);
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return `expected an https address, since a key is sent there (http is for this machine only); got "http://${url.host}": write "https://${url.host}"`;
  }
  if (/\/v1\/?$/.test(url.pathname)) return 'expected the address without "/v1": that part of the path is added to it';
  return undefined;
}

const BASE_URL_EXAMPLE = 'such as "https://api.deepgram.com"';

/** The address as calls are made from it: normalised, without a slash at its end. */
export function normaliseBaseUrl(text: string): string {
  const url = new URL(text);
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

// What a secret can't be, in words that repeat nothing of it. Pure.

/** Far longer than any secret, which has to fit into a header: more is another file. */
const SECRET_LENGTH_MAX = 4096;

export function quotesProblem(secret: string, word: string): string | undefined {
  return /^["'`]|["'`]$/.test(secret) ? `looks quoted: remove the quotes around the ${word}` : undefined;
}

export function tooLongProblem(secret: string): string | undefined {
  const { length } = [...secret];
  return length > SECRET_LENGTH_MAX ? `holds ${length} characters: expected at most ${SECRET_LENGTH_MAX}` : undefined;
}

/** Of what stands in a header as it is; `aside` says more of the scheme it is sent with. */
export function headerSecretProblem(secret: string, word: string, aside = ""): string | undefined {
  const quotes = quotesProblem(secret, word);
  if (quotes !== undefined) return quotes;
  const scheme = SCHEME_AND_KEY.exec(secret)?.[1];
  if (scheme !== undefined) return `begins with the word "${scheme}": remove it, the ${word} stands alone${aside}`;
  if (/\s/.test(secret)) return `holds a space or line break: expected the ${word} alone, on one line`;
  if (!/^[\x21-\x7e]+$/.test(secret)) {
    return `holds a control character or one outside ASCII: expected the ${word} alone, as it was shown`;
  }
  return tooLongProblem(secret);
}
