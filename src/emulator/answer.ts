// The service's answers, and the bodies of its errors. Pure.

export type Json = Readonly<Record<string, unknown>>;

export type Answer =
  | { readonly kind: "json"; readonly status: number; readonly json: Json }
  | { readonly kind: "text"; readonly status: number; readonly text: string };

export function ok(json: Json): Answer {
  return { kind: "json", status: 200, json };
}

/** The service answers a key it does not know with plain text. */
export const INVALID_CREDENTIALS: Answer = { kind: "text", status: 401, text: "Invalid credentials." };

/** An error whose answer also names the request. */
export type Refusal = { readonly kind: "refusal"; readonly status: number; readonly body: Json };

export function badRequest(details: string): Refusal {
  return refusal(400, { category: "BAD_REQUEST", message: "The request is not valid.", details });
}

export function missingScope(scope: string): Refusal {
  return refusal(403, {
    category: "INSUFFICIENT_PERMISSIONS",
    message: "The key has not the permissions for this.",
    details: `Check that your account has the '${scope}' scope for this project.`,
  });
}

export function notFound(details: string): Refusal {
  return refusal(404, { category: "NOT_FOUND", message: "There is nothing here.", details });
}

function refusal(status: number, body: Json): Refusal {
  return { kind: "refusal", status, body };
}
