// Parses the body of a create-key request, and knows which scopes exist and what each allows. Pure.

import { z } from "zod";

export type KeyRequest = {
  readonly comment: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[] | undefined;
  readonly expiresAt: Date | undefined;
};

/** The service may accept unknown fields. They are refused here because a misspelt one would go unnoticed. */
const Body = z
  .strictObject({
    comment: z.string(),
    scopes: z.array(z.string().refine(isScope, "unknown scope")).min(1),
    tags: z.array(z.string().max(128)).min(1).optional(),
    expiration_date: z.iso.datetime({ offset: true }).optional(),
    time_to_live_in_seconds: z.int().positive().optional(),
  })
  .refine(
    (body) => body.expiration_date === undefined || body.time_to_live_in_seconds === undefined,
    "expiration_date and time_to_live_in_seconds exclude each other",
  );

/** The request, or what is wrong with it. */
export function parseKeyRequest(text: string, now: Date): KeyRequest | string {
  const body = parseJson(text);
  if (body === undefined) return "the body is not JSON";
  const { data, error } = Body.safeParse(body);
  if (error) return z.prettifyError(error);
  const scopes = grantedScopes(data.scopes);
  const kind = kindOfKey(scopes);
  if (kind === "half") return "a self-hosted key needs both self-hosted product scopes";
  const { comment, tags, expiration_date: date, time_to_live_in_seconds: seconds } = data;
  const expiresMs = seconds === undefined ? date && Date.parse(date) : now.getTime() + seconds * 1000;
  return {
    comment,
    scopes,
    tags: kind === "self-hosted" ? undefined : tags,
    expiresAt: expiresMs === undefined ? undefined : new Date(expiresMs),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

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
