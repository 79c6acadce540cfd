// Reads, creates and deletes API keys: /v1/auth/token, /v1/projects/{id}/keys.

import { z } from "zod";
import { AppError } from "../errors.ts";
import { isFreeOfSecret, Secret } from "../secret.ts";
import { Id, parseAnswer, undefinedFor } from "./answer.ts";
import type { Service, ServiceCall } from "./client-types.ts";

const Scopes = z.preprocess((scopes) => scopes ?? [], z.array(z.string()));
const TokenAnswer = z.object({ api_key_id: Id, scopes: Scopes });
const ListedKey = TokenAnswer.extend({
  comment: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  created: z.string().nullish(),
});
const KeyListAnswer = z.object({ api_keys: z.array(z.object({ api_key: ListedKey })) });

/** The id and scopes of the calling key; undefined if the service has no such call. */
export async function fetchKeyInfo(service: Service, key: Secret, signal: AbortSignal) {
  const call = { operation: "token", method: "GET", path: ["v1", "auth", "token"] } as const;
  const answer = await service.call(call, key, signal).catch(undefinedFor(404));
  if (!answer) return undefined;
  const { api_key_id: apiKeyId, scopes } = parseAnswer(TokenAnswer, answer, "the calling key");
  return { apiKeyId, scopes };
}

/** Undefined if the service has no list (404), or does not show it to this key (403). The list may lack keys that other callers made. */
export async function listKeys(service: Service, projectId: string, key: Secret, signal: AbortSignal) {
  const path = ["v1", "projects", projectId, "keys"];
  const call = { operation: "list_keys", method: "GET", path, scopes: ["keys:read"] } as const;
  const answer = await service.call(call, key, signal).catch(undefinedFor(403, 404));
  if (!answer) return undefined;
  const { api_keys: listed } = parseAnswer(KeyListAnswer, answer, "the list of keys");
  return listed.map(({ api_key: { api_key_id: apiKeyId, scopes, comment, tags, created } }) => {
    return { apiKeyId, scopes, comment: comment ?? "", tags: tags ?? undefined, created: created ?? undefined };
  });
}

/** False if the key was gone. Safe to repeat. Callers must spare their own key and a project's last key: the service would delete these, too. */
export async function deleteKey(service: Service, projectId: string, id: string, key: Secret, signal: AbortSignal) {
  const path = ["v1", "projects", projectId, "keys", id];
  const call = { operation: "delete_key", method: "DELETE", path, scopes: ["keys:write"] } as const;
  return (await service.call(call, key, signal).catch(undefinedFor(404))) !== undefined;
}

export type KeyRequest = {
  readonly comment: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[];
  readonly expiresInSeconds?: number | undefined;
};

/** Only the id and the key are required: an unreadable timestamp is no reason to lose a key. */
const CreatedKeyAnswer = z.object({
  api_key_id: Id,
  key: z.string().regex(/^[\x21-\x7e]{1,1000}$/, "not a key"),
  scopes: z.array(z.string()).catch([]),
  created: z.string().pipe(z.coerce.date()).optional().catch(undefined),
});

/** Sends one POST, after `beforeAttempt`, and never repeats it: if its answer is lost, it may have made a key. Once sent, it can't be aborted. */
export async function createKey(
  service: Service,
  projectId: string,
  { comment, scopes: asked, tags, expiresInSeconds }: KeyRequest,
  callerKey: Secret,
  signal: AbortSignal,
  beforeAttempt?: ServiceCall["beforeAttempt"],
) {
  const path = ["v1", "projects", projectId, "keys"];
  // The service has refused an empty list of tags.
  const body = { comment, scopes: asked, time_to_live_in_seconds: expiresInSeconds, ...(tags.length > 0 && { tags }) };
  const call = { operation: "create_key", method: "POST", scopes: ["keys:write"] } as const;
  const answer = await service.call({ ...call, path, body, beforeAttempt }, callerKey, signal);
  const { api_key_id: apiKeyId, key, scopes, created } = parseAnswer(CreatedKeyAnswer, answer, "the created key");
  // The other fields of the answer are stored and shown, so none of them may contain the key.
  const isFree = (text: string) => isFreeOfSecret(text, key);
  if (!isFree(apiKeyId)) throw new AppError("bad_answer", "the created key: its id holds the key itself");
  return { apiKeyId, key: new Secret(key), scopes: scopes.filter(isFree), created };
}

/** With these statuses the service created no key. With any other it may have. */
const NOT_CREATED: ReadonlySet<unknown> = new Set([400, 401, 403, 404, 409, 422, 429]);

/** Whether a create that failed with this error certainly made no key. An abort's reason is thrown only if the create was not sent yet. */
export function madeNoKey(error: unknown, signal: AbortSignal): boolean {
  if (error === signal.reason) return true;
  return error instanceof AppError && (error.details.sent === "no" || NOT_CREATED.has(error.details.status));
}
