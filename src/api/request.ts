// Builds what is sent: the path and the headers of a call. Pure, but that the key is revealed here, to be signed with.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { ServiceCall, ServiceSettings } from "./service.ts";

/** Escaping is no guard: `..` escaped is still `..`, and leads out of the project. */
const PATH_PART = /^[A-Za-z0-9_-]{1,128}$/;
const SHOWN_LENGTH_MAX = 60;

export function isIdentifier(text: string): boolean {
  return PATH_PART.test(text);
}

export function pathOf(base: URL, { path, query }: ServiceCall): string {
  const wrong = path.find((part) => !isIdentifier(part));
  if (wrong !== undefined) {
    const shown = JSON.stringify(wrong.slice(0, SHOWN_LENGTH_MAX));
    const message = `an id of the service has 1 to 128 letters, digits, "_" or "-", and this one is ${shown}`;
    throw new AppError("config", message, { details: { sent: "no" } });
  }
  const search = query === undefined || query.size === 0 ? "" : `?${query}`;
  return `${base.pathname.replace(/\/$/, "")}/${path.join("/")}${search}`;
}

export function headersOf(
  scheme: ServiceSettings["authScheme"],
  key: Secret,
  hasBody: boolean,
): Record<string, string> {
  const value = key.reveal();
  if (!/^[\x21-\x7e]+$/.test(value)) {
    const message = "the key is empty, or holds a space, a line break or a letter that cannot be sent";
    throw new AppError("config", message, { details: { sent: "no" } });
  }
  return {
    authorization: scheme === "none" ? value : `${scheme} ${value}`,
    accept: "application/json",
    // A compressed answer can be a thousand times larger than what was received.
    "accept-encoding": "identity",
    "user-agent": "usage-export",
    ...(hasBody && { "content-type": "application/json" }),
  };
}
