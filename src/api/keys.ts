// Reads and deletes API keys, and learns what a key is: /v1/auth/token, /v1/projects, /v1/projects/{id}/keys.

import { z } from "zod";
import type { Secret } from "../secret.ts";
import type { Project } from "../usage/series.ts";
import type { ServiceAnswer } from "./answer.ts";
import type { Service, ServiceCall } from "./service.ts";
import { Id, isStatus, parseShape } from "./shape.ts";

export type KeyToken = {
  readonly apiKeyId: string;
  readonly scopes: readonly string[];
  readonly created?: string | undefined;
};

export type ListedKey = KeyToken & { readonly comment: string; readonly tags?: readonly string[] | undefined };

const Scopes = z.array(z.string()).nullish();
const Created = z.string().nullish();

const Token = z.object({ api_key_id: Id, scopes: Scopes, created: Created });
const Key = Token.extend({ comment: z.string().nullish(), tags: z.array(z.string()).nullish() });
const Listed = z.object({ api_keys: z.array(z.object({ api_key: Key })) });
/** One key comes in two wrappings. */
const Single = z.union([
  z.object({ api_key: Key }).transform(({ api_key }) => api_key),
  z.object({ item: z.object({ member: z.object({ api_key: Key }) }) }).transform(({ item }) => item.member.api_key),
]);
const Projects = z.object({ projects: z.array(z.object({ project_id: Id, name: z.string().nullish() })) });

/** What the calling key is; undefined where the service does not say. */
export async function fetchToken(service: Service, key: Secret, signal: AbortSignal): Promise<KeyToken | undefined> {
  const answer = await answerUnless(
    [404],
    service,
    { method: "GET", path: ["v1", "auth", "token"], retry: true },
    key,
    signal,
  );
  return answer && tokenOf(parseShape(Token, answer, "the calling key"));
}

/** The projects that the key can see. */
export async function fetchProjects(service: Service, key: Secret, signal: AbortSignal): Promise<readonly Project[]> {
  const answer = await service.call({ method: "GET", path: ["v1", "projects"], retry: true }, key, signal);
  const { projects } = parseShape(Projects, answer, "the list of projects");
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
  const answer = await answerUnless([403, 404], service, call, key, signal);
  return answer && parseShape(Listed, answer, "the list of keys").api_keys.map(({ api_key }) => listedKeyOf(api_key));
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
  const answer = await answerUnless([404], service, call, key, signal);
  return answer && listedKeyOf(parseShape(Single, answer, "a key"));
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
  const answer = await answerUnless([404], service, call, key, signal);
  return answer === undefined ? "absent" : "deleted";
}

async function answerUnless(
  statuses: readonly number[],
  service: Service,
  call: ServiceCall,
  key: Secret,
  signal: AbortSignal,
): Promise<ServiceAnswer | undefined> {
  try {
    return await service.call(call, key, signal);
  } catch (error) {
    if (isStatus(error, statuses)) return undefined;
    throw error;
  }
}

function tokenOf(token: z.output<typeof Token>): KeyToken {
  return { apiKeyId: token.api_key_id, scopes: token.scopes ?? [], created: token.created ?? undefined };
}

function listedKeyOf(key: z.output<typeof Key>): ListedKey {
  return { ...tokenOf(key), comment: key.comment ?? "", tags: key.tags ?? undefined };
}
