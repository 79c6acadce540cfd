// An authorised call, the service's answer to it, and the bodies of its errors. Pure.

import type { ApiKey } from "./keys.ts";

export type Json = Readonly<Record<string, unknown>>;

export type Answer =
  | { readonly kind: "json"; readonly status: number; readonly json: Json }
  | { readonly kind: "text"; readonly status: number; readonly text: string };

export function ok(json: Json): Answer {
  return { kind: "json", status: 200, json };
}

/** The service answers a key it does not know with plain text. */
export const INVALID_CREDENTIALS: Answer = { kind: "text", status: 401, text: "Invalid credentials." };

type Refusal = {
  readonly status: number;
  readonly category: string;
  readonly message: string;
  readonly details: string;
};

export function refuse({ status, ...words }: Refusal, requestId: string): Answer {
  return { kind: "json", status, json: { ...words, request_id: requestId } };
}

export function badRequest(details: string): Refusal {
  return { status: 400, category: "BAD_REQUEST", message: "The request is not valid.", details };
}

export function missingScope(scope: string): Refusal {
  return {
    status: 403,
    category: "INSUFFICIENT_PERMISSIONS",
    message: "The key has not the permissions for this.",
    details: `Check that your account has the '${scope}' scope for this project.`,
  };
}

export function notFound(details: string): Refusal {
  return { status: 404, category: "NOT_FOUND", message: "There is nothing here.", details };
}

// A request that may be answered: its key works, is of the project asked for, and has the scope.

export type Call = {
  readonly caller: ApiKey;
  /** The key that the path names. */
  readonly keyId: string | undefined;
  readonly parameters: URLSearchParams;
  readonly contentType: string;
  readonly body: string;
  readonly now: Date;
  readonly requestId: string;
};
