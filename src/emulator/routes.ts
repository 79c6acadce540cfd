// The emulator's endpoints. They check the key, the project and the scope of a request, in this order.

import type { Dialect, Source } from "../usage/dimensions.ts";
import { balances, billingFields, breakdownRows, usageFields } from "./breakdown.ts";
import { ageDays, type DayRange, dayOf, daysOf, isDay, rangeOf } from "./days.ts";
import { type ApiKey, type KeyStore, mayDo, parseKeyRequest } from "./keys.ts";
import type { UsageRecord, UsageSource } from "./usage.ts";

export type Emulated = {
  readonly dialect: Dialect;
  /** The first day whose usage the balance pays for. */
  readonly firstPaidDay: string;
  readonly usage: UsageSource;
  readonly keys: KeyStore;
  /** The projects of the account, which an account key sees. */
  readonly projects: () => readonly AccountProject[];
};

type AccountProject = { readonly id: string; readonly name: string };

export type IncomingRequest = {
  readonly method: string;
  readonly rawUrl: string;
  readonly url: URL;
  /** The key that the request's secret belongs to. */
  readonly caller: ApiKey | undefined;
  readonly contentType: string;
  readonly body: string;
  readonly now: Date;
  readonly requestId: string;
};

/** A request that the caller's key allows. `caller.projectId` is the project in the path or, without one, the key's own project. */
type Call = IncomingRequest & { readonly caller: ApiKey; readonly keyId: string | undefined };

export type Json = Readonly<Record<string, unknown>>;
/** The server adds the request's id to the body of an error. */
export type EmulatorAnswer = { readonly status: number } & ({ readonly json: Json } | { readonly text: string });

type Handler = (call: Call, service: Emulated) => EmulatorAnswer;

const ROUTES: readonly (readonly [method: string, path: RegExp, scope: string | undefined, answer: Handler])[] = [
  ["GET", pathPattern("/v1/projects/:project/usage/breakdown"), "project:read", onDays(breakdown("usage"))],
  ["GET", pathPattern("/v1/projects/:project/usage/fields"), "project:read", onDays(fields(usageFields))],
  ["GET", pathPattern("/v1/projects/:project/billing/breakdown"), "billing:read", onDays(breakdown("billing"))],
  ["GET", pathPattern("/v1/projects/:project/billing/fields"), "billing:read", onDays(fields(billingFields))],
  ["GET", pathPattern("/v1/projects/:project/balances"), "billing:read", answerBalances],
  ["POST", pathPattern("/v1/projects/:project/keys"), "keys:write", createKey],
  ["GET", pathPattern("/v1/projects/:project/keys"), "keys:read", listKeys],
  ["DELETE", pathPattern("/v1/projects/:project/keys/:key"), "keys:write", deleteKey],
  ["GET", pathPattern("/v1/projects"), undefined, listProjects],
  ["GET", pathPattern("/v1/auth/token"), undefined, describeCaller],
];

function pathPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`);
}

export function answerTo(incoming: IncomingRequest, service: Emulated): EmulatorAnswer {
  const { method, url, caller } = incoming;
  const { pathname } = url;
  // The service's answer to an unknown key is plain text, not JSON.
  if (!caller) return { status: 401, text: "Invalid credentials." };
  const route = ROUTES.find(([routeMethod, path]) => routeMethod === method && path.test(pathname));
  if (!route) return notFound("no such path");
  const [, path, scope, answer] = route;
  const { project, key: keyId } = path.exec(pathname)?.groups ?? {};
  const namedProject = visibleProjects(caller, service).find(({ id }) => encodeURIComponent(id) === project);
  // Another account's project looks like one that does not exist.
  if (project !== undefined && !namedProject) return notFound("no such project");
  if (scope !== undefined && !mayDo(caller.scopes, scope)) return missingScope(scope);
  const projectId = namedProject?.id ?? caller.projectId;
  return answer({ ...incoming, caller: { ...caller, projectId }, keyId }, service);
}

function visibleProjects({ projectId, isAccountKey }: ApiKey, service: Emulated): readonly AccountProject[] {
  return isAccountKey ? service.projects() : [{ id: projectId, name: projectId }];
}

function listProjects({ caller }: Call, service: Emulated): EmulatorAnswer {
  return ok({ projects: visibleProjects(caller, service).map(({ id, name }) => ({ project_id: id, name })) });
}

// Usage and cost, always by day.

type DaysHandler = (range: DayRange, call: Call, service: Emulated) => Json;

function onDays(answer: DaysHandler): Handler {
  return (call, service) => {
    const { searchParams } = call.url;
    const [start, end] = ["start", "end"].map((name) => searchParams.get(name) ?? undefined);
    if ([start, end].some((day) => day !== undefined && !isDay(day)))
      return badRequest("start and end must be days, YYYY-MM-DD");
    return ok(answer(rangeOf(start, end, call.now), call, service));
  };
}

function breakdown(source: Source): DaysHandler {
  return (range, call, service) => {
    const results = daysOf(range).flatMap((day) =>
      breakdownRows(usageOn([day], call, service), day, call.url.searchParams, source, service.dialect),
    );
    return { ...range, resolution: { units: "day", amount: 1 }, results };
  };
}

function fields(fieldsOf: (records: readonly UsageRecord[]) => Json): DaysHandler {
  return (range, call, service) => fieldsOf(usageOn(daysOf(range), call, service));
}

function answerBalances(call: Call, service: Emulated): EmulatorAnswer {
  const days = daysOf({ start: service.firstPaidDay, end: dayOf(call.now) });
  return ok(balances(call.caller.projectId, usageOn(days, call, service)));
}

function usageOn(days: readonly string[], { caller, now }: Call, { usage }: Emulated): readonly UsageRecord[] {
  const begun = days.filter((day) => ageDays(day, now) >= 0);
  return begun.flatMap((day) => usage(caller.projectId, day, ageDays(day, now)));
}

// API keys. A secret is in the answer of a create and nowhere else.

function createKey({ caller, contentType, body, now }: Call, { keys }: Emulated): EmulatorAnswer {
  if (!/^application\/json\b/i.test(contentType)) return badRequest("expected the content type application/json");
  const request = parseKeyRequest(body, now);
  if (typeof request === "string") return badRequest(request);
  const { key, secret } = keys.create(caller, request, now);
  return ok({ ...describeKey(key), key: secret });
}

function listKeys({ caller, now }: Call, { keys }: Emulated): EmulatorAnswer {
  return ok({ api_keys: keys.activeKeysOf(caller.projectId, now).map((key) => ({ api_key: describeKey(key) })) });
}

/** Nothing protects the caller's own key, nor the last key of a project. */
function deleteKey({ caller, keyId, now }: Call, { keys }: Emulated): EmulatorAnswer {
  const key = keys.activeKeysOf(caller.projectId, now).find(({ apiKeyId }) => apiKeyId === keyId);
  if (!key) return notFound("no such key");
  keys.remove(key);
  return ok({ message: "The key was deleted." });
}

function describeCaller({ caller }: Call): EmulatorAnswer {
  return ok({ api_key_id: caller.apiKeyId, scopes: caller.scopes, created: caller.created });
}

function describeKey({ apiKeyId, comment, scopes, tags, created, expiresAt }: ApiKey): Json {
  const expiry = expiresAt && { expiration_date: expiresAt.toISOString() };
  return { api_key_id: apiKeyId, comment, scopes, ...(tags && { tags }), created, ...expiry };
}

function ok(json: Json): EmulatorAnswer {
  return { status: 200, json };
}

function badRequest(details: string): EmulatorAnswer {
  return { status: 400, json: { category: "BAD_REQUEST", message: "The request is not valid.", details } };
}

function missingScope(scope: string): EmulatorAnswer {
  const details = `Check that your account has the '${scope}' scope for this project.`;
  return { status: 403, json: { category: "INSUFFICIENT_PERMISSIONS", message: "The key may not do this.", details } };
}

function notFound(details: string): EmulatorAnswer {
  return { status: 404, json: { category: "NOT_FOUND", message: "There is nothing here.", details } };
}
