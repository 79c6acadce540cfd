// Creates an API key: one POST, never a second one. The service has no key against repetition, so a repeated create is a
// second key, and a lost answer a key whose secret nobody has.

import { z } from "zod";
import { AppError } from "../errors.ts";
import { Secret } from "../secret.ts";
import { isFreeOf } from "../secret-search.ts";
import type { Service } from "./service.ts";
import { Id, parseShape } from "./shape.ts";

export type KeyRequest = {
  readonly comment: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[];
  readonly expiresInSeconds?: number | undefined;
};

export type CreatedKey = {
  readonly apiKeyId: string;
  readonly key: Secret;
  readonly comment?: string | undefined;
  /** As granted: in another order, expanded, or empty where the service does not say. */
  readonly scopes: readonly string[];
  readonly tags?: readonly string[] | undefined;
  readonly created?: string | undefined;
};

/** The statuses by which the service says that it made no key. After any other it may have. */
const NOT_CREATED: ReadonlySet<unknown> = new Set([400, 401, 403, 404, 409, 422, 429]);

/** Only the id and the key must be right: an odd timestamp is no reason to lose a key. */
const Created = z.object({
  api_key_id: Id,
  key: z.string().regex(/^[\x21-\x7e]{1,1000}$/, "not a key"),
  comment: z.string().optional().catch(undefined),
  scopes: z.array(z.string()).catch([]),
  tags: z.array(z.string()).optional().catch(undefined),
  created: z.string().optional().catch(undefined),
});

/**
 * Sends one create. A failure is an AppError whose `details.created` is "no" where surely no key was made, and "unknown"
 * where one may have been. Once it is under way an abort does not cut it; before, the abort is thrown as it is, and
 * nothing was sent.
 */
export async function createKey(
  service: Service,
  projectId: string,
  request: KeyRequest,
  callerKey: Secret,
  signal: AbortSignal,
): Promise<CreatedKey> {
  const path = ["v1", "projects", projectId, "keys"];
  const body = {
    comment: request.comment,
    scopes: request.scopes,
    // An empty list has been refused.
    ...(request.tags.length > 0 && { tags: request.tags }),
    ...(request.expiresInSeconds !== undefined && { time_to_live_in_seconds: request.expiresInSeconds }),
  };
  try {
    const call = { method: "POST", path, body, retry: false, secretAnswer: true, scopes: ["keys:write"] } as const;
    const answer = await service.call(call, callerKey, signal);
    const { api_key_id: apiKeyId, key, ...rest } = parseShape(Created, answer, "the created key");
    // The other fields of the answer are stored and shown, so none of them may contain the key.
    const isFree = (text: string) => isFreeOf(text, key);
    if (!isFree(apiKeyId)) throw new AppError("bad_answer", "the created key: its id holds the key itself");
    return {
      ...{ apiKeyId, key: new Secret(key), created: rest.created },
      scopes: rest.scopes.filter(isFree),
      comment: isFree(rest.comment ?? "") ? rest.comment : undefined,
      tags: rest.tags?.filter(isFree),
    };
  } catch (error) {
    if (!(error instanceof AppError) || error === signal.reason) throw error;
    const { code, message, details, cause } = error;
    const isSurelyNot = details.sent === "no" || NOT_CREATED.has(details.status);
    throw new AppError(code, message, { cause, details: { ...details, created: isSurelyNot ? "no" : "unknown" } });
  }
}
