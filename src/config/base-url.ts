// Which addresses a key may be sent to. Pure.

import { shown } from "./fault.ts";

/** What is wrong with the address, or undefined. An address that may hold a password is never repeated. */
export function baseUrlFault(text: string): string | undefined {
  if (/^\w+:\/\/[^/]*@/.test(text)) {
    return "a name or password in the address is refused (and not shown here): remove what stands before the @";
  }
  if (text.includes("?") || text.includes("#")) return `expected an address without "?" and "#" ${EXAMPLE}`;
  // A URL parser takes other slashes, spaces and line breaks for what they are not.
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) {
    return `expected an https address ${EXAMPLE}${text.includes("@") ? "" : `; got ${shown(text)}`}`;
  }

  const url = new URL(text);
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return `expected an https address, since a key is sent there (http is for this machine only); got "http://${url.host}": write "https://${url.host}"`;
  }
  if (/\/v1\/?$/.test(url.pathname)) return 'expected the address without "/v1": that part of the path is added to it';
  return undefined;
}

const EXAMPLE = 'such as "https://api.deepgram.com"';

/** The address as calls are made from it: normalised, without a slash at its end. */
export function normaliseBaseUrl(text: string): string {
  const url = new URL(text);
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
