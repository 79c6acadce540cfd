// The emulator's endpoints. A request is checked for its key, then its project, then its scope, and answered from usage or keys.

import {
  type Answer,
  badRequest,
  type Call,
  INVALID_CREDENTIALS,
  type Json,
  missingScope,
  notFound,
  ok,
  refuse,
} from "./answer.ts";
import { type BreakdownStyle, dailyBreakdown, fieldsOf, parseBreakdownQuery, undatedBreakdown } from "./breakdown.ts";
import { addDays, ageDays, dayOf, daysOf, isDay, type Window, windowOf } from "./days.ts";
import { mayDo, parseKeyRequest } from "./key-request.ts";
import type { ApiKey, KeyStore } from "./keys.ts";
import type { UsageRecord, UsageSource } from "./usage.ts";

export type Service = UsageService & { readonly keys: KeyStore };

/** A request as it came, with the key that its secret belongs to. */
export type IncomingRequest = {
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

export function answerTo(asked: IncomingRequest, service: Service): Answer {
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

// What the service answers about usage.

/**
 * - "on": `start` and `end` are honoured, and echoed
 * - "ignored": both are names of features like any unknown name; the answer is of the last 30 days whatever was asked
 * - "undated": the same, and the answer is one summary of yesterday that does not say so
 * - "unnamed": both are honoured, and the answer is one summary that does not name them; without them it is of yesterday
 * - "cumulative": both are ignored, and the answer is one summary of all usage up to now, which only grows and has no date
 */
const WINDOW_MODES = ["on", "ignored", "undated", "unnamed", "cumulative"] as const;
export type WindowMode = (typeof WINDOW_MODES)[number];

type UsageService = BreakdownStyle & {
  readonly window: WindowMode;
  /** "ignored": every answer is the one without a grouping. */
  readonly grouping: "on" | "ignored";
  /** The first day of the cumulative summary. */
  readonly countsFrom: string;
  readonly fields: "on" | "missing";
  readonly usage: UsageSource;
};

function answerBreakdown(call: Call, service: UsageService): Answer {
  const parsed = parseBreakdownQuery(call.parameters, service.dialect);
  const query = service.grouping === "ignored" ? { ...parsed, grouping: undefined } : parsed;
  const window = requestedWindow(call, service);
  if (!window) return refuse(badRequest("start and end must be days, YYYY-MM-DD"), call.requestId);
  if (isUndated(service.window)) {
    const days = daysOf(summaryWindow(call, service, window));
    return ok(
      undatedBreakdown(
        days.flatMap((day) => usageOn(day, call, service)),
        query,
        service,
      ),
    );
  }
  return ok(dailyBreakdown(window, (day) => usageOn(day, call, service), query, service));
}

function answerFields(call: Call, service: UsageService): Answer {
  if (service.fields === "missing") return refuse(notFound("no such path"), call.requestId);
  const window = requestedWindow(call, service);
  if (!window) return refuse(badRequest("start and end must be days, YYYY-MM-DD"), call.requestId);
  return ok(fieldsOf(daysOf(window).flatMap((day) => usageOn(day, call, service))));
}

function isUndated(window: WindowMode): boolean {
  return window !== "on" && window !== "ignored";
}

/** The days of a summary that does not name its days. */
function summaryWindow({ parameters, now }: Call, { window, countsFrom }: UsageService, asked: Window): Window {
  if (window === "cumulative") return { start: countsFrom, end: dayOf(now) };
  if (window === "unnamed" && (parameters.has("start") || parameters.has("end"))) return asked;
  const yesterday = addDays(dayOf(now), -1);
  return { start: yesterday, end: yesterday };
}

function requestedWindow({ parameters, now }: Call, { window }: UsageService): Window | undefined {
  if (window !== "on" && window !== "unnamed") return windowOf(undefined, undefined, now);
  const start = parameters.get("start") ?? undefined;
  const end = parameters.get("end") ?? undefined;
  if ([start, end].some((day) => day !== undefined && !isDay(day))) return undefined;
  return windowOf(start, end, now);
}

function usageOn(day: string, { caller, now }: Call, { usage }: UsageService): readonly UsageRecord[] {
  const age = ageDays(day, now);
  return age < 0 ? [] : usage(caller.projectId, day, age);
}

// What the service answers about API keys. A secret is in the answer of a create and nowhere else.

function createKey(call: Call, keys: KeyStore): Answer {
  if (!/^application\/json\b/i.test(call.contentType)) {
    return refuse(badRequest("expected the content type application/json"), call.requestId);
  }
  const parsed = parseKeyRequest(call.body, call.now);
  if (!parsed.ok) return refuse(badRequest(parsed.details), call.requestId);
  const { key, secret } = keys.create(call.caller, parsed.request, call.now);
  return ok({ ...describeKey(key), key: secret });
}

function listKeys(call: Call, keys: KeyStore): Answer {
  return ok({ api_keys: keys.visibleTo(call.caller, call.now).map(withMember) });
}

function getKey(call: Call, keys: KeyStore): Answer {
  const key = findVisibleKey(call, keys);
  return key ? ok(withMember(key)) : refuse(notFound("no such key"), call.requestId);
}

/** Nothing protects the caller's own key, nor the last one of a project. */
function deleteKey(call: Call, keys: KeyStore): Answer {
  const key = findVisibleKey(call, keys);
  if (!key) return refuse(notFound("no such key"), call.requestId);
  keys.remove(key);
  return ok({ message: "The key was deleted." });
}

/** Tells a key who it is. */
function describeCaller({ caller }: Call): Answer {
  return ok({ api_key_id: caller.apiKeyId, scopes: caller.scopes, created: caller.created });
}

function findVisibleKey({ caller, keyId, now }: Call, keys: KeyStore): ApiKey | undefined {
  return keys.visibleTo(caller, now).find(({ apiKeyId }) => apiKeyId === keyId);
}

function withMember(key: ApiKey): Json {
  const member = { member_id: key.memberId, email: `${key.memberId.slice(0, 8)}@example.test` };
  return { member, api_key: describeKey(key) };
}

function describeKey({ apiKeyId, comment, scopes, tags, created, expiresAt }: ApiKey): Json {
  return {
    api_key_id: apiKeyId,
    comment,
    scopes,
    ...(tags && { tags }),
    created,
    ...(expiresAt && { expiration_date: expiresAt.toISOString() }),
  };
}
