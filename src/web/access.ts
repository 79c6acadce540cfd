// Decides which requests are answered. Health checks always are; everything else needs the configured credentials. Without
// credentials, a monitor on a loopback address answers requests to the names of this machine. On any other address it answers
// everything: the configuration then says "access": "none".

import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "../secret.ts";
import { type Page, textPage } from "./page.ts";

/** What must be sent: a token, or a user name and password as `name:password`. */
export type Access = { readonly scheme: "Bearer" | "Basic"; readonly credentials: Secret };

/** "anyone": always answered. "machines" and "people": need the credentials if any are configured. */
export type Audience = "anyone" | "machines" | "people";

type RequestHeaders = { readonly host?: string | undefined; readonly authorization?: string | undefined };

export type Gate = (audience: Audience, visitor: RequestHeaders) => Page | undefined;

/** `isLoopback`: only this machine can reach the monitor. The gate returns the page of a refusal, or undefined to let a request in. */
export function openGate(access: Access | undefined, isLoopback: boolean): Gate {
  const hasCredentials = access && credentialsCheck(access);
  return (audience, { host, authorization }) => {
    if (audience === "anyone") return undefined;
    if (hasCredentials) return hasCredentials(authorization) ? undefined : unauthorizedPage(access.scheme);
    return isLoopback && !isOwnHost(host) ? foreignHostPage() : undefined;
  };
}

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^(?:::ffff:)?127\./.test(address);
}

/** Against DNS rebinding: a website whose name was pointed at this machine sends that name as its host. */
function isOwnHost(host: string | undefined): boolean {
  return host !== undefined && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(host);
}

/** Hashes are compared, so the time does not depend on how much of a guess is right. */
function credentialsCheck({ scheme, credentials }: Access): (authorization: string | undefined) => boolean {
  const expected = hash(Buffer.from(credentials.reveal()));
  return (authorization = "") => {
    const [, word = "", rest = ""] = /^(\w+) +(\S+)$/.exec(authorization) ?? [];
    const sent = Buffer.from(rest, scheme === "Basic" ? "base64" : "latin1");
    return timingSafeEqual(hash(sent), expected) && word.toLowerCase() === scheme.toLowerCase();
  };
}

function hash(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}

function unauthorizedPage(scheme: Access["scheme"]): Page {
  const charset = scheme === "Basic" ? ', charset="UTF-8"' : "";
  return {
    ...textPage(401, ["expected the credentials that monitor.access of the configuration names"]),
    headers: { "www-authenticate": `${scheme} realm="usage-export"${charset}` },
  };
}

function foreignHostPage(): Page {
  return textPage(403, [
    "without monitor.access this is answered on this machine only, at localhost, 127.0.0.1 or [::1]",
    "use one of these addresses, or set monitor.access in the configuration",
  ]);
}
