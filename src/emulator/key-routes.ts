// What the service answers about API keys. A secret is in the answer of a create and nowhere else.

import { type Answer, badRequest, type Json, notFound, ok, refuse } from "./answer.ts";
import type { Call } from "./call.ts";
import { parseKeyRequest } from "./key-request.ts";
import type { ApiKey, KeyStore } from "./keys.ts";

export function createKey(call: Call, keys: KeyStore): Answer {
  if (!/^application\/json\b/i.test(call.contentType)) {
    return refuse(badRequest("expected the content type application/json"), call.requestId);
  }
  const parsed = parseKeyRequest(call.body, call.now);
  if (!parsed.ok) return refuse(badRequest(parsed.details), call.requestId);
  const { key, secret } = keys.create(call.caller, parsed.request, call.now);
  return ok({ ...describe(key), key: secret });
}

export function listKeys(call: Call, keys: KeyStore): Answer {
  return ok({ api_keys: keys.seenBy(call.caller, call.now).map(withMember) });
}

export function getKey(call: Call, keys: KeyStore): Answer {
  const key = findSeen(call, keys);
  return key ? ok(withMember(key)) : refuse(notFound("no such key"), call.requestId);
}

/** Nothing protects the caller's own key, nor the last one of a project. */
export function deleteKey(call: Call, keys: KeyStore): Answer {
  const key = findSeen(call, keys);
  if (!key) return refuse(notFound("no such key"), call.requestId);
  keys.remove(key);
  return ok({ message: "The key was deleted." });
}

/** Tells a key who it is. */
export function describeCaller({ caller }: Call): Answer {
  return ok({ api_key_id: caller.apiKeyId, scopes: caller.scopes, created: caller.created });
}

function findSeen({ caller, keyId, now }: Call, keys: KeyStore): ApiKey | undefined {
  return keys.seenBy(caller, now).find(({ apiKeyId }) => apiKeyId === keyId);
}

function withMember(key: ApiKey): Json {
  const member = { member_id: key.memberId, email: `${key.memberId.slice(0, 8)}@example.test` };
  return { member, api_key: describe(key) };
}

function describe({ apiKeyId, comment, scopes, tags, created, expiresAt }: ApiKey): Json {
  return {
    api_key_id: apiKeyId,
    comment,
    scopes,
    ...(tags && { tags }),
    created,
    ...(expiresAt && { expiration_date: expiresAt.toISOString() }),
  };
}
