// Decides who is answered. Health checks are for everybody; the rest is for who knows the configured secret. Without one,
// who asks at this machine's own address is trusted, and nobody else is shown the dashboard.

import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "../secret.ts";
import { type Page, textPage } from "./page.ts";

/** What must be sent: a token, or a user name and password as `name:password`. */
export type Access = { readonly scheme: "Bearer" | "Basic"; readonly credentials: Secret };

/** "anyone": always answered. "machines": also where no secret is asked for. "people": only where nobody else can look. */
export type Audience = "anyone" | "machines" | "people";

/** The headers of a request that matter here. */
type RequestHeaders = { readonly host?: string | undefined; readonly authorization?: string | undefined };

export type Gate = (audience: Audience, visitor: RequestHeaders) => Page | undefined;

/** `isLoopback` is whether only this machine reaches the monitor. The gate returns how a visitor is turned away. */
export function openGate(access: Access | undefined, isLoopback: boolean): Gate {
  const knows = access && credentialsCheck(access);
  return (audience, { host, authorization }) => {
    if (audience === "anyone") return undefined;
    if (knows) return knows(authorization) ? undefined : unauthorizedPage(access.scheme);
    if (isLoopback) return isOwnHost(host) ? undefined : foreignHostPage();
    return audience === "people" ? dashboardRefusedPage() : undefined;
  };
}

export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^(?:::ffff:)?127\./.test(address);
}

/** A page from elsewhere whose name was made to lead to this machine can't read what is here: its requests carry that name. */
function isOwnHost(host: string | undefined): boolean {
  return host !== undefined && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i.test(host);
}

/** Hashes are compared, in the same time however much of a guess is right. */
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
    "ask there, or set monitor.access in the configuration",
  ]);
}

function dashboardRefusedPage(): Page {
  return textPage(403, [
    "the dashboard is not shown here: others than this machine reach this address, and nothing is asked of them",
    "set monitor.access in the configuration, or monitor.host to 127.0.0.1",
  ]);
}
