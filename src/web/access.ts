// The URL of the monitor, and which requests it answers. It always answers health checks. With credentials configured, it answers requests that
// carry them. Without, it answers all requests if other machines reach it ("access": "none"), else those whose Host is localhost or loopback.

import { hash, timingSafeEqual } from "node:crypto";
import type { Secret } from "../secret.ts";
import { type Page, textPage } from "./page.ts";

export type MonitorAddress = { readonly host: string; readonly port: number };

/** A wildcard listens on every address, but requests can't be sent to it: loopback takes its place. */
const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** The URL for requests from this machine; without a slash at its end. */
export function monitorUrl({ host, port }: MonitorAddress): string {
  const reached = WILDCARDS[host] ?? host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^(?:::ffff:)?127\./.test(address);
}

/** What must be sent: a token, or a user name and password as `name:password`. */
export type Access = { readonly scheme: "Bearer" | "Basic"; readonly credentials: Secret };

type RequestHeaders = { readonly host?: string | undefined; readonly authorization?: string | undefined };

/** Returns undefined to let the request in. `isLoopback`: only this machine can reach the monitor. */
export function refusalPage(access: Access | undefined, isLoopback: boolean, sent: RequestHeaders): Page | undefined {
  if (access) {
    if (hasCredentials(access, sent.authorization)) return undefined;
    const charset = access.scheme === "Basic" ? ', charset="UTF-8"' : "";
    return textPage(401, ["send the token or the user name and password of monitor.access in the configuration"], {
      "www-authenticate": `${access.scheme} realm="usage-export"${charset}`,
    });
  }
  if (!isLoopback || isOwnHost(sent.host)) return undefined;
  return textPage(403, [
    "without monitor.access this is answered on this machine only, at localhost, 127.0.0.1 or [::1]",
    "use one of these addresses, or set monitor.access in the configuration",
  ]);
}

/** Prevents DNS rebinding: a website whose name resolves to this machine sends that name as its host. */
function isOwnHost(host: string | undefined): boolean {
  return host !== undefined && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(host);
}

/** Compares hashes, so that the time does not tell how much of a guess is right. Hono's `bearerAuth` would refuse a token with "!" or ":". */
function hasCredentials({ scheme, credentials }: Access, authorization = ""): boolean {
  const [, sentScheme = "", sentText = ""] = /^(\w+) +(\S+)$/.exec(authorization) ?? [];
  const sent = Buffer.from(sentText, scheme === "Basic" ? "base64" : "latin1");
  const expected = hash("sha256", credentials.reveal(), "buffer");
  const isKnown = timingSafeEqual(hash("sha256", sent, "buffer"), expected);
  return isKnown && sentScheme.toLowerCase() === scheme.toLowerCase();
}
