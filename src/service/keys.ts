// Reads, creates and deletes API keys: /v1/auth/token, /v1/projects, /v1/projects/{id}/keys.

import { z } from "zod";
import { AppError } from "../errors.ts";
import { isFreeOfSecret, Secret } from "../secret.ts";
import type { Project } from "../usage/series.ts";
import type { ServiceAnswer } from "./answer.ts";
import { hasStatus, Id, parseAnswer } from "./request.ts";
import type { Service, ServiceCall } from "./service.ts";

export type KeyToken = {
  readonly apiKeyId: string;
  readonly scopes: readonly string[];
  readonly created?: string | undefined;
};

export type ListedKey = KeyToken & { readonly comment: string; readonly tags?: readonly string[] | undefined };

const ScopeList = z.array(z.string()).nullish();
const CreatedTime = z.string().nullish();

const TokenAnswer = z.object({ api_key_id: Id, scopes: ScopeList, created: CreatedTime });
const KeyAnswer = TokenAnswer.extend({ comment: z.string().nullish(), tags: z.array(z.string()).nullish() });
const KeyListAnswer = z.object({ api_keys: z.array(z.object({ api_key: KeyAnswer })) });
/** One key comes in two wrappings. */
const SingleKeyAnswer = z.union([
  z.object({ api_key: KeyAnswer }).transform(({ api_key }) => api_key),
  z
    .object({ item: z.object({ member: z.object({ api_key: KeyAnswer }) }) })
    .transform(({ item }) => item.member.api_key),
]);
const ProjectListAnswer = z.object({ projects: z.array(z.object({ project_id: Id, name: z.string().nullish() })) });

/** What the calling key is; undefined where the service does not say. */
export async function fetchToken(service: Service, key: Secret, signal: AbortSignal): Promise<KeyToken | undefined> {
  const answer = await callUnlessStatus(
    [404],
    service,
    { method: "GET", path: ["v1", "auth", "token"], retry: true },
    key,
    signal,
  );
  return answer && tokenOf(parseAnswer(TokenAnswer, answer, "the calling key"));
}

/** The projects that the key can see. */
export async function fetchProjects(service: Service, key: Secret, signal: AbortSignal): Promise<readonly Project[]> {
  const answer = await service.call({ method: "GET", path: ["v1", "projects"], retry: true }, key, signal);
  const { projects } = parseAnswer(ProjectListAnswer, answer, "the list of projects");
  return projects.map(({ project_id: id, name }) => ({ id, name: name ?? id }));
}

/** Undefined where the service has no list or does not show it to this key. It may hold only keys that the caller made. */
export async function listKeys(
  service: Service,
  projectId: string,
  key: Secret,
  signal: AbortSignal,
): Promise<readonly ListedKey[] | undefined> {
  const path = ["v1", "projects", projectId, "keys"];
  const call: ServiceCall = { method: "GET", path, retry: true, scopes: ["keys:read"] };
  const answer = await callUnlessStatus([403, 404], service, call, key, signal);
  return (
    answer && parseAnswer(KeyListAnswer, answer, "the list of keys").api_keys.map(({ api_key }) => listedKeyOf(api_key))
  );
}

/** Undefined where there is no such key. */
export async function fetchKey(
  service: Service,
  projectId: string,
  apiKeyId: string,
  key: Secret,
  signal: AbortSignal,
): Promise<ListedKey | undefined> {
  const path = ["v1", "projects", projectId, "keys", apiKeyId];
  const call: ServiceCall = { method: "GET", path, retry: true, scopes: ["keys:read"] };
  const answer = await callUnlessStatus([404], service, call, key, signal);
  return answer && listedKeyOf(parseAnswer(SingleKeyAnswer, answer, "a key"));
}

/** Safe to repeat. Nothing in the service protects the calling key, or the last one. */
export async function deleteKey(
  service: Service,
  projectId: string,
  apiKeyId: string,
  key: Secret,
  signal: AbortSignal,
): Promise<"deleted" | "absent"> {
  const path = ["v1", "projects", projectId, "keys", apiKeyId];
  const call: ServiceCall = { method: "DELETE", path, retry: true, scopes: ["keys:write"] };
  const answer = await callUnlessStatus([404], service, call, key, signal);
  return answer === undefined ? "absent" : "deleted";
}

async function callUnlessStatus(
  statuses: readonly number[],
  service: Service,
  call: ServiceCall,
  key: Secret,
  signal: AbortSignal,
): Promise<ServiceAnswer | undefined> {
  try {
    return await service.call(call, key, signal);
  } catch (error) {
    if (hasStatus(error, statuses)) return undefined;
    throw error;
  }
}

function tokenOf(token: z.output<typeof TokenAnswer>): KeyToken {
  return { apiKeyId: token.api_key_id, scopes: token.scopes ?? [], created: token.created ?? undefined };
}

function listedKeyOf(key: z.output<typeof KeyAnswer>): ListedKey {
  return { ...tokenOf(key), comment: key.comment ?? "", tags: key.tags ?? undefined };
}

// Creates an API key: one POST, never a second one. The service has no key against repetition, so a repeated create is a
// second key, and a lost answer a key whose secret nobody has.

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
const CreatedKeyAnswer = z.object({
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
    const { api_key_id: apiKeyId, key, ...rest } = parseAnswer(CreatedKeyAnswer, answer, "the created key");
    // The other fields of the answer are stored and shown, so none of them may contain the key.
    const isFree = (text: string) => isFreeOfSecret(text, key);
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
