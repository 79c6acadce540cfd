// Finds what is asked for, and whether the caller may have it: first the key, then the project, then the scope.

import { type Answer, INVALID_CREDENTIALS, missingScope, notFound, ok, refuse } from "./answer.ts";
import type { Call } from "./call.ts";
import { createKey, deleteKey, describeCaller, getKey, listKeys } from "./key-routes.ts";
import type { ApiKey, KeyStore } from "./keys.ts";
import { mayDo } from "./scopes.ts";
import { answerBreakdown, answerFields, type UsageService } from "./usage-routes.ts";

export type Service = UsageService & { readonly keys: KeyStore };

/** A request as it came, with the key that its secret belongs to. */
export type Asked = {
  readonly method: string;
  readonly url: URL;
  readonly caller: ApiKey | undefined;
  readonly contentType: string;
  readonly body: string;
  readonly now: Date;
  readonly requestId: string;
};

type Route = {
  readonly method: string;
  readonly path: RegExp;
  readonly scope: string | undefined;
  readonly answer: (call: Call, service: Service) => Answer;
};

const PROJECT = "/v1/projects/(?<project>[^/]+)";
const KEYS = new RegExp(`^${PROJECT}/keys$`);
const KEY = new RegExp(`^${PROJECT}/keys/(?<key>[^/]+)$`);

const ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: new RegExp(`^${PROJECT}/usage/breakdown$`),
    scope: "project:read",
    answer: answerBreakdown,
  },
  { method: "GET", path: new RegExp(`^${PROJECT}/usage/fields$`), scope: "project:read", answer: answerFields },
  { method: "POST", path: KEYS, scope: "keys:write", answer: (call, { keys }) => createKey(call, keys) },
  { method: "GET", path: KEYS, scope: "keys:read", answer: (call, { keys }) => listKeys(call, keys) },
  { method: "GET", path: KEY, scope: "keys:read", answer: (call, { keys }) => getKey(call, keys) },
  { method: "DELETE", path: KEY, scope: "keys:write", answer: (call, { keys }) => deleteKey(call, keys) },
  { method: "GET", path: /^\/v1\/projects$/, scope: undefined, answer: listProjects },
  { method: "GET", path: /^\/v1\/auth\/token$/, scope: undefined, answer: describeCaller },
];

export function answerTo(asked: Asked, service: Service): Answer {
  const { method, url, caller, ...rest } = asked;
  if (!caller) return INVALID_CREDENTIALS;
  const route = ROUTES.find((route) => route.method === method && route.path.test(url.pathname));
  if (!route) return refuse(notFound("no such path"), asked.requestId);
  const { project, key } = route.path.exec(url.pathname)?.groups ?? {};
  // A project of others is not told apart from one that does not exist.
  if (project !== undefined && project !== encodeURIComponent(caller.projectId)) {
    return refuse(notFound("no such project"), asked.requestId);
  }
  if (route.scope !== undefined && !mayDo(caller.scopes, route.scope)) {
    return refuse(missingScope(route.scope), asked.requestId);
  }
  return route.answer({ ...rest, caller, parameters: url.searchParams, keyId: key }, service);
}

function listProjects({ caller: { projectId } }: Call): Answer {
  return ok({ projects: [{ project_id: projectId, name: projectId }] });
}
