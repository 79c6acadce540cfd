// The emulator's endpoints. They check a request's key, then its project, then its scope, and answer from usage or keys.

import type { Dialect } from "../usage/dimensions.ts";
import { balances, billingBreakdown, billingFields, parseBillingQuery } from "./billing.ts";
import { breakdownRows, fieldsOf, parseBreakdownQuery } from "./breakdown.ts";
import { ageDays, dayOf, daysOf, isDay, type Window, windowOf } from "./days.ts";
import { type ApiKey, type KeyStore, mayDo, parseKeyRequest } from "./keys.ts";
import type { UsageRecord, UsageSource } from "./usage.ts";

export type Service = {
  readonly dialect: Dialect;
  /** The first day whose usage the balance pays for. */
  readonly countsFrom: string;
  readonly usage: UsageSource;
  readonly keys: KeyStore;
  /** The projects of the account at this moment, which an account key sees. */
  readonly projects: () => readonly AccountProject[];
};

export type AccountProject = { readonly id: string; readonly name: string };

/** A request as it came, with the key that its secret belongs to. */
export type IncomingRequest = {
  readonly method: string;
  /** As it came, with the query. */
  readonly path: string;
  readonly url: URL;
  readonly caller: ApiKey | undefined;
  readonly contentType: string;
  readonly body: string;
  readonly now: Date;
  readonly requestId: string;
};

/** A request whose key works, belongs to the project of the path and has the scope. `keyId` is the key that the path names. */
type Call = IncomingRequest & { readonly caller: ApiKey; readonly keyId: string | undefined };

type Route = {
  readonly method: string;
  readonly path: RegExp;
  readonly scope: string | undefined;
  readonly answer: (call: Call, service: Service) => Answer | Refusal;
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
  {
    method: "GET",
    path: new RegExp(`^${PROJECT}/billing/breakdown$`),
    scope: "billing:read",
    answer: answerBillingBreakdown,
  },
  {
    method: "GET",
    path: new RegExp(`^${PROJECT}/billing/fields$`),
    scope: "billing:read",
    answer: answerBillingFields,
  },
  { method: "GET", path: new RegExp(`^${PROJECT}/balances$`), scope: "billing:read", answer: answerBalances },
  { method: "POST", path: KEYS, scope: "keys:write", answer: createKey },
  { method: "GET", path: KEYS, scope: "keys:read", answer: listKeys },
  { method: "DELETE", path: KEY, scope: "keys:write", answer: deleteKey },
  { method: "GET", path: /^\/v1\/projects$/, scope: undefined, answer: listProjects },
  { method: "GET", path: /^\/v1\/auth\/token$/, scope: undefined, answer: describeCaller },
];

export function answerTo(incoming: IncomingRequest, service: Service): Answer {
  const answer = route(incoming, service);
  if (answer.kind !== "refusal") return answer;
  return { kind: "json", status: answer.status, json: { ...answer.body, request_id: incoming.requestId } };
}

function route(incoming: IncomingRequest, service: Service): Answer | Refusal {
  const { method, url, caller } = incoming;
  if (!caller) return INVALID_CREDENTIALS;
  const found = ROUTES.find((one) => one.method === method && one.path.test(url.pathname));
  if (!found) return notFound("no such path");
  const { project, key } = found.path.exec(url.pathname)?.groups ?? {};
  const visible = projectsOf(caller, service);
  const named = visible.find(({ id }) => encodeURIComponent(id) === project);
  // Another account's project looks like one that does not exist.
  if (project !== undefined && !named) return notFound("no such project");
  if (found.scope !== undefined && !mayDo(caller.scopes, found.scope)) return missingScope(found.scope);
  return found.answer(
    { ...incoming, caller: { ...caller, projectId: named?.id ?? caller.projectId }, keyId: key },
    service,
  );
}

function projectsOf({ projectId, isAccountKey }: ApiKey, service: Service): readonly AccountProject[] {
  return isAccountKey ? service.projects() : [{ id: projectId, name: projectId }];
}

function listProjects({ caller }: Call, service: Service): Answer {
  return ok({ projects: projectsOf(caller, service).map(({ id, name }) => ({ project_id: id, name })) });
}

// What the service answers about usage.

function answerBreakdown(call: Call, service: Service): Answer | Refusal {
  const query = parseBreakdownQuery(call.url.searchParams, service.dialect);
  const window = requestedWindow(call);
  if (!window) return badRequest(WRONG_DAYS);
  const rowsOf = (day: string) => breakdownRows(usageOn(day, call, service), query, service.dialect, day);
  return ok({ ...window, resolution: { units: "day", amount: 1 }, results: daysOf(window).flatMap(rowsOf) });
}

function answerFields(call: Call, service: Service): Answer | Refusal {
  const window = requestedWindow(call);
  if (!window) return badRequest(WRONG_DAYS);
  return ok(fieldsOf(daysOf(window).flatMap((day) => usageOn(day, call, service))));
}

const WRONG_DAYS = "start and end must be days, YYYY-MM-DD";

/** Undefined if `start` or `end` is no day. */
function requestedWindow({ url, now }: Call): Window | undefined {
  const start = url.searchParams.get("start") ?? undefined;
  const end = url.searchParams.get("end") ?? undefined;
  if ([start, end].some((day) => day !== undefined && !isDay(day))) return undefined;
  return windowOf(start, end, now);
}

function usageOn(day: string, { caller, now }: Call, { usage }: Service): readonly UsageRecord[] {
  const age = ageDays(day, now);
  return age < 0 ? [] : usage(caller.projectId, day, age);
}

// What the service answers about cost, always by day.

function answerBillingBreakdown(call: Call, service: Service): Answer | Refusal {
  const window = requestedWindow(call);
  if (!window) return badRequest(WRONG_DAYS);
  const query = parseBillingQuery(call.url.searchParams, service.dialect);
  return ok(billingBreakdown(window, (day) => usageOn(day, call, service), query));
}

function answerBillingFields(call: Call, service: Service): Answer | Refusal {
  const window = requestedWindow(call);
  if (!window) return badRequest(WRONG_DAYS);
  return ok(billingFields(daysOf(window).flatMap((day) => usageOn(day, call, service))));
}

/** Pays for all usage since the emulator began to count. */
function answerBalances(call: Call, service: Service): Answer {
  const days = daysOf({ start: service.countsFrom, end: dayOf(call.now) });
  const records = days.flatMap((day) => usageOn(day, call, service));
  return ok(balances(call.caller.projectId, records));
}

// What the service answers about API keys. A secret is in the answer of a create and nowhere else.

function createKey(call: Call, { keys }: Service): Answer | Refusal {
  if (!/^application\/json\b/i.test(call.contentType)) {
    return badRequest("expected the content type application/json");
  }
  const request = parseKeyRequest(call.body, call.now);
  if (typeof request === "string") return badRequest(request);
  const { key, secret } = keys.create(call.caller, request, call.now);
  return ok({ ...describeKey(key), key: secret });
}

function listKeys({ caller, now }: Call, { keys }: Service): Answer {
  return ok({ api_keys: keys.visibleTo(caller, now).map(withMember) });
}

/** Nothing protects the caller's own key, nor the last key of a project. */
function deleteKey(call: Call, service: Service): Answer | Refusal {
  const key = findVisibleKey(call, service);
  if (!key) return notFound("no such key");
  service.keys.remove(key);
  return ok({ message: "The key was deleted." });
}

function describeCaller({ caller }: Call): Answer {
  return ok({ api_key_id: caller.apiKeyId, scopes: caller.scopes, created: caller.created });
}

function findVisibleKey({ caller, keyId, now }: Call, { keys }: Service): ApiKey | undefined {
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

// Answers, and the bodies of errors.

export type Json = Readonly<Record<string, unknown>>;

export type Answer =
  | { readonly kind: "json"; readonly status: number; readonly json: Json }
  | { readonly kind: "text"; readonly status: number; readonly text: string };

function ok(json: Json): Answer {
  return { kind: "json", status: 200, json };
}

/** The service answers a key it does not know with plain text. */
const INVALID_CREDENTIALS: Answer = { kind: "text", status: 401, text: "Invalid credentials." };

/** An error whose answer also names the request. */
type Refusal = { readonly kind: "refusal"; readonly status: number; readonly body: Json };

function badRequest(details: string): Refusal {
  return refusal(400, { category: "BAD_REQUEST", message: "The request is not valid.", details });
}

function missingScope(scope: string): Refusal {
  return refusal(403, {
    category: "INSUFFICIENT_PERMISSIONS",
    message: "The key has not the permissions for this.",
    details: `Check that your account has the '${scope}' scope for this project.`,
  });
}

function notFound(details: string): Refusal {
  return refusal(404, { category: "NOT_FOUND", message: "There is nothing here.", details });
}

function refusal(status: number, body: Json): Refusal {
  return { kind: "refusal", status, body };
}
