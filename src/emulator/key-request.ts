// Parses the body of a create-key request, and knows which scopes exist and what each allows. Pure.

export type KeyRequest = {
  readonly comment: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[] | undefined;
  readonly expiresAt: Date | undefined;
};

export type ParsedKeyRequest =
  | { readonly ok: true; readonly request: KeyRequest }
  | { readonly ok: false; readonly details: string };

const FIELDS = ["comment", "scopes", "tags", "expiration_date", "time_to_live_in_seconds"];
const TAG_LENGTH_MAX = 128;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

export function parseKeyRequest(text: string, now: Date): ParsedKeyRequest {
  const body = parseObject(text);
  if (!body) return { ok: false, details: "the body is not a JSON object" };
  // Nothing says that the service refuses a field it does not know. A misspelt one that passed would go unnoticed.
  const unknown = Object.keys(body).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) return { ok: false, details: `unknown field ${JSON.stringify(unknown)}` };

  const { comment, scopes, tags } = body;
  if (typeof comment !== "string") return { ok: false, details: "comment must be a text" };
  if (!isTexts(scopes) || scopes.length === 0)
    return { ok: false, details: "scopes must be a list of texts, not empty" };
  const unknownScope = scopes.find((name) => !isScope(name));
  if (unknownScope !== undefined) return { ok: false, details: `unknown scope ${JSON.stringify(unknownScope)}` };
  if (tags !== undefined && !isTags(tags)) {
    return { ok: false, details: `tags must be a list of texts of up to ${TAG_LENGTH_MAX} characters, not empty` };
  }
  const expiry = parseExpiry(body, now);
  if (!expiry.ok) return expiry;

  const granted = grantedScopes(scopes);
  const kind = kindOfKey(granted);
  if (kind === "half") return { ok: false, details: "a self-hosted key needs both self-hosted product scopes" };
  return {
    ok: true,
    request: {
      comment,
      scopes: granted,
      tags: kind === "self-hosted" ? undefined : tags,
      expiresAt: expiry.expiresAt,
    },
  };
}

type Expiry =
  | { readonly ok: true; readonly expiresAt: Date | undefined }
  | { readonly ok: false; readonly details: string };

function parseExpiry(body: Readonly<Record<string, unknown>>, now: Date): Expiry {
  const { expiration_date: date, time_to_live_in_seconds: seconds } = body;
  if (date !== undefined && seconds !== undefined) {
    return { ok: false, details: "expiration_date and time_to_live_in_seconds exclude each other" };
  }
  if (date !== undefined) {
    return isDateTime(date)
      ? { ok: true, expiresAt: new Date(date) }
      : { ok: false, details: "expiration_date must be a full date-time" };
  }
  if (seconds === undefined) return { ok: true, expiresAt: undefined };
  return isSeconds(seconds)
    ? { ok: true, expiresAt: new Date(now.getTime() + seconds * 1000) }
    : { ok: false, details: "time_to_live_in_seconds must be a whole number above 0" };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isTags(value: unknown): value is string[] {
  return isTexts(value) && value.length > 0 && value.every((tag) => tag.length <= TAG_LENGTH_MAX);
}

function isDateTime(value: unknown): value is string {
  return typeof value === "string" && DATE_TIME.test(value) && !Number.isNaN(Date.parse(value));
}

function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

// What a key may do, and which scopes a new key comes back with. Pure.

const MEMBER_SCOPES = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** A star at the end stands for everything that begins like it. */
const ROLES: ReadonlyMap<string, readonly string[]> = new Map([
  ["member", MEMBER_SCOPES],
  ["admin", [...MEMBER_SCOPES, "members:*", "admins:*", "billing:read"]],
  ["owner", ["*"]],
]);

const SELF_HOSTED = "self-hosted:products";
const SELF_HOSTED_PRODUCTS = ["self-hosted:product:api", "self-hosted:product:engine"];

export function mayDo(granted: readonly string[], scope: string): boolean {
  return granted
    .flatMap((name) => ROLES.get(name) ?? [name])
    .some((name) => (name.endsWith("*") ? scope.startsWith(name.slice(0, -1)) : name === scope));
}

/** A role's name, or a scope's: words with colons between them. */
function isScope(name: string): boolean {
  return ROLES.has(name) || /^[a-z][a-z_-]*(:[a-z][a-z_-]*)+$/.test(name);
}

/** The scopes as the service lists them: roles by name, shorthands expanded, in an order of its own. */
export function grantedScopes(asked: readonly string[]): string[] {
  const granted = asked.flatMap((name) => {
    if (name === SELF_HOSTED) return SELF_HOSTED_PRODUCTS;
    return name === "keys:write" ? ["keys:read", "keys:write"] : [name];
  });
  return [...new Set(granted)].sort();
}

/** "half": one of the two products without the other, which makes no key of either kind. */
function kindOfKey(granted: readonly string[]): "regular" | "self-hosted" | "half" {
  const products = SELF_HOSTED_PRODUCTS.filter((product) => granted.includes(product)).length;
  if (products === 0) return "regular";
  return products === SELF_HOSTED_PRODUCTS.length ? "self-hosted" : "half";
}
