// The emulator's endpoints. They check a request's key, then its project, then its scope, and answer from usage or keys.

import type { Dialect, Source } from "../usage/dimensions.ts";
import { balances, billingFields, breakdownRows, usageFields } from "./breakdown.ts";
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

type AccountProject = { readonly id: string; readonly name: string };

/** A request as it came, with the key that its secret belongs to. */
export type IncomingRequest = {
  readonly method: string;
  /** The path as it came, with the query. */
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

export type Json = Readonly<Record<string, unknown>>;
/** The body of an error gets the request's id. */
export type Answer =
  | { readonly status: number; readonly json: Json }
  | { readonly status: number; readonly text: string };

type Route = {
  readonly method: string;
  readonly path: RegExp;
  readonly scope: string | undefined;
  readonly answer: (call: Call, service: Service) => Answer;
};

const ROUTES: readonly Route[] = [
  route("GET", "/v1/projects/:project/usage/breakdown", "project:read", overDays(breakdown("usage"))),
  route("GET", "/v1/projects/:project/usage/fields", "project:read", overDays(fields(usageFields))),
  route("GET", "/v1/projects/:project/billing/breakdown", "billing:read", overDays(breakdown("billing"))),
  route("GET", "/v1/projects/:project/billing/fields", "billing:read", overDays(fields(billingFields))),
  route("GET", "/v1/projects/:project/balances", "billing:read", answerBalances),
  route("POST", "/v1/projects/:project/keys", "keys:write", createKey),
  route("GET", "/v1/projects/:project/keys", "keys:read", listKeys),
  route("DELETE", "/v1/projects/:project/keys/:key", "keys:write", deleteKey),
  route("GET", "/v1/projects", undefined, listProjects),
  route("GET", "/v1/auth/token", undefined, describeCaller),
];

function route(method: string, path: string, scope: string | undefined, answer: Route["answer"]): Route {
  return { method, path: new RegExp(`^${path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`), scope, answer };
}

export function answerTo(incoming: IncomingRequest, service: Service): Answer {
  const { method, url, caller } = incoming;
  // The service answers a key it does not know with plain text.
  if (!caller) return { status: 401, text: "Invalid credentials." };
  const found = ROUTES.find((one) => one.method === method && one.path.test(url.pathname));
  if (!found) return notFound("no such path");
  const { project, key } = found.path.exec(url.pathname)?.groups ?? {};
  const named = projectsOf(caller, service).find(({ id }) => encodeURIComponent(id) === project);
  // Another account's project looks like one that does not exist.
  if (project !== undefined && !named) return notFound("no such project");
  if (found.scope !== undefined && !mayDo(caller.scopes, found.scope)) return missingScope(found.scope);
  const projectId = named?.id ?? caller.projectId;
  return found.answer({ ...incoming, caller: { ...caller, projectId }, keyId: key }, service);
}

function projectsOf({ projectId, isAccountKey }: ApiKey, service: Service): readonly AccountProject[] {
  return isAccountKey ? service.projects() : [{ id: projectId, name: projectId }];
}

function listProjects({ caller }: Call, service: Service): Answer {
  return ok({ projects: projectsOf(caller, service).map(({ id, name }) => ({ project_id: id, name })) });
}

// What the service answers about usage and cost, always by day.

type UsageOn = (day: string) => readonly UsageRecord[];
type DaysAnswer = (window: Window, usageOn: UsageOn, call: Call, service: Service) => Json;

/** Answers a request for the days from `start` to `end`. */
function overDays(answer: DaysAnswer): Route["answer"] {
  return (call, service) => {
    const start = call.url.searchParams.get("start") ?? undefined;
    const end = call.url.searchParams.get("end") ?? undefined;
    const isWrong = [start, end].some((day) => day !== undefined && !isDay(day));
    if (isWrong) return badRequest("start and end must be days, YYYY-MM-DD");
    return ok(answer(windowOf(start, end, call.now), usageOf(call, service), call, service));
  };
}

function usageOf({ caller, now }: Call, { usage }: Service): UsageOn {
  return (day) => {
    const age = ageDays(day, now);
    return age < 0 ? [] : usage(caller.projectId, day, age);
  };
}

function breakdown(source: Source): DaysAnswer {
  return (window, usageOn, { url }, { dialect }) => {
    const results = daysOf(window).flatMap((day) =>
      breakdownRows(usageOn(day), day, url.searchParams, source, dialect),
    );
    return { ...window, resolution: { units: "day", amount: 1 }, results };
  };
}

function fields(fieldsOf: (records: readonly UsageRecord[]) => Json): DaysAnswer {
  return (window, usageOn) => fieldsOf(daysOf(window).flatMap(usageOn));
}

/** Pays for all usage since the emulator began to count. */
function answerBalances(call: Call, service: Service): Answer {
  const days = daysOf({ start: service.countsFrom, end: dayOf(call.now) });
  return ok(balances(call.caller.projectId, days.flatMap(usageOf(call, service))));
}

// What the service answers about API keys. A secret is in the answer of a create and nowhere else.

function createKey({ caller, contentType, body, now }: Call, { keys }: Service): Answer {
  if (!/^application\/json\b/i.test(contentType)) return badRequest("expected the content type application/json");
  const request = parseKeyRequest(body, now);
  if (typeof request === "string") return badRequest(request);
  const { key, secret } = keys.create(caller, request, now);
  return ok({ ...describeKey(key), key: secret });
}

function listKeys({ caller, now }: Call, { keys }: Service): Answer {
  return ok({ api_keys: keys.keysOf(caller.projectId, now).map((key) => ({ api_key: describeKey(key) })) });
}

/** Nothing protects the caller's own key, nor the last key of a project. */
function deleteKey({ caller, keyId, now }: Call, { keys }: Service): Answer {
  const key = keys.keysOf(caller.projectId, now).find(({ apiKeyId }) => apiKeyId === keyId);
  if (!key) return notFound("no such key");
  keys.remove(key);
  return ok({ message: "The key was deleted." });
}

function describeCaller({ caller }: Call): Answer {
  return ok({ api_key_id: caller.apiKeyId, scopes: caller.scopes, created: caller.created });
}

function describeKey({ apiKeyId, comment, scopes, tags, created, expiresAt }: ApiKey): Json {
  const expiry = expiresAt && { expiration_date: expiresAt.toISOString() };
  return { api_key_id: apiKeyId, comment, scopes, ...(tags && { tags }), created, ...expiry };
}

// Answers, and the bodies of errors.

function ok(json: Json): Answer {
  return { status: 200, json };
}

function badRequest(details: string): Answer {
  return { status: 400, json: { category: "BAD_REQUEST", message: "The request is not valid.", details } };
}

function missingScope(scope: string): Answer {
  const details = `Check that your account has the '${scope}' scope for this project.`;
  const message = "The key has not the permissions for this.";
  return { status: 403, json: { category: "INSUFFICIENT_PERMISSIONS", message, details } };
}

function notFound(details: string): Answer {
  return { status: 404, json: { category: "NOT_FOUND", message: "There is nothing here.", details } };
}
