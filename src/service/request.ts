// Builds the path and the headers of a call, and checks an answer against its schema. Pure, except that the key is revealed here
// to sign the call.

import { z } from "zod";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { ServiceAnswer } from "./answer.ts";
import type { ServiceCall, ServiceSettings } from "./service.ts";

/** Escaping is no guard: `..` escaped is still `..`, and leads out of the project. */
const PATH_PART = /^[A-Za-z0-9_-]{1,128}$/;
const SHOWN_ID_LENGTH_MAX = 60;

function isIdentifier(text: string): boolean {
  return PATH_PART.test(text);
}

export function pathOf(base: URL, { path, query }: ServiceCall): string {
  const wrong = path.find((part) => !isIdentifier(part));
  if (wrong !== undefined) {
    const shown = JSON.stringify(wrong.slice(0, SHOWN_ID_LENGTH_MAX));
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

// Checks the shape of an answer, at the edge: past it, types are believed.

/** An id becomes part of a path, so it is checked as soon as the service names it. */
export const Id = z.string().refine(isIdentifier, "not an id");

const ISSUES_SHOWN = 3;

/** Throws `bad_answer` and names the places, never what stands there. */
export function parseAnswer<T extends z.ZodType>(schema: T, answer: ServiceAnswer, what: string): z.output<T> {
  const parsed = schema.safeParse(answer.value);
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues
    .slice(0, ISSUES_SHOWN)
    .map(({ path, message }) => `${path.join(".") || "the answer"}: ${message}`);
  const { status, requestId } = answer;
  throw new AppError("bad_answer", `${what}: the answer has another shape than expected (${places.join("; ")})`, {
    details: { status, ...(requestId !== undefined && { requestId }) },
  });
}

/** Whether the service said by one of these statuses that there is no such thing. */
export function hasStatus(error: unknown, statuses: readonly number[]): boolean {
  return error instanceof AppError && statuses.some((status) => error.details.status === status);
}
