// The API keys of all projects, and what a create-key request and a scope mean. Secrets are kept as digests, so nothing here can reveal one
// again.

import { createHash, randomBytes, randomUUID } from "node:crypto";
import { z } from "zod";
import { apiKeyId, uuidFrom } from "./usage.ts";

/** A key made in the service's web console. A project's first key can only be made there. Each belongs to a different person. */
export type ConsoleKey = {
  readonly secret: string;
  readonly projectId: string;
  readonly scopes: readonly string[];
  /** The key may use every project of the account, and not only its own. */
  readonly isAccountKey?: boolean;
};

export type ApiKey = {
  readonly apiKeyId: string;
  readonly projectId: string;
  /** The person whom the key belongs to. A key created with another key belongs to the same person. */
  readonly memberId: string;
  readonly origin: "console" | "created";
  readonly comment: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[] | undefined;
  /** With microseconds, as the service writes it. */
  readonly created: string;
  readonly expiresAt: Date | undefined;
  /** Also for the keys that it creates. */
  readonly isAccountKey: boolean;
};

export type KeyState = ApiKey & { readonly state: "active" | "expired" | "deleted" };

export type KeyStore = {
  /** The working key that has this secret. */
  find(secret: string, now: Date): ApiKey | undefined;
  create(creator: ApiKey, request: KeyRequest, now: Date): { readonly key: ApiKey; readonly secret: string };
  /** The working keys of the caller's project that the caller may see. */
  visibleTo(caller: ApiKey, now: Date): ApiKey[];
  remove(key: ApiKey): void;
  /** Every key that ever was, oldest first. */
  states(now: Date): KeyState[];
};

/** A key with all of these scopes sees the keys of other members too. */
const SEE_ALL_SCOPES = ["members:read", "admins:read", "owners:read"];

export function openKeyStore(consoleKeys: readonly ConsoleKey[], seed: number, now: Date): KeyStore {
  const byDigest = new Map<string, ApiKey>();
  const deletedIds = new Set<string>();

  const add = (secret: string, key: Omit<ApiKey, "created">, createdAt: Date): ApiKey => {
    const digest = digestOf(secret);
    if (byDigest.has(digest))
      throw new Error(`two console keys have the same secret; the second is of ${key.projectId}`);
    const created = withMicroseconds(createdAt, byDigest.size);
    const added = { ...key, created };
    byDigest.set(digest, added);
    return added;
  };
  const stateOf = (key: ApiKey, at: Date): KeyState["state"] => {
    if (deletedIds.has(key.apiKeyId)) return "deleted";
    return key.expiresAt && key.expiresAt <= at ? "expired" : "active";
  };

  const countByProject = new Map<string, number>();
  for (const { secret, projectId, scopes, isAccountKey = false } of consoleKeys) {
    const n = countByProject.get(projectId) ?? 0;
    countByProject.set(projectId, n + 1);
    const id = apiKeyId(seed, projectId, n);
    const member = { memberId: uuidFrom("member", id), isAccountKey };
    const identity = { apiKeyId: id, projectId, ...member, origin: "console" as const };
    const comment = "made in the console";
    add(secret, { ...identity, comment, scopes: grantedScopes(scopes), tags: undefined, expiresAt: undefined }, now);
  }

  return {
    find(secret, at) {
      const key = byDigest.get(digestOf(secret));
      return key && stateOf(key, at) === "active" ? key : undefined;
    },
    create({ projectId, memberId, isAccountKey }, request, at) {
      const secret = randomBytes(20).toString("hex");
      const identity = { apiKeyId: randomUUID(), projectId, memberId, isAccountKey, origin: "created" as const };
      return { secret, key: add(secret, { ...identity, ...request }, at) };
    },
    visibleTo(caller, at) {
      const all = SEE_ALL_SCOPES.every((scope) => mayDo(caller.scopes, scope));
      return [...byDigest.values()]
        .filter((key) => key.projectId === caller.projectId && stateOf(key, at) === "active")
        .filter((key) => all || key.memberId === caller.memberId);
    },
    remove({ apiKeyId }) {
      deletedIds.add(apiKeyId);
    },
    states: (at) => [...byDigest.values()].map((key) => ({ ...key, state: stateOf(key, at) })),
  };
}

function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** A Date has no microseconds, so the number of the key is used in their place. */
function withMicroseconds(instant: Date, n: number): string {
  return instant.toISOString().replace("Z", `${String(n % 1000).padStart(3, "0")}Z`);
}

// The body of a create-key request.

type KeyRequest = {
  readonly comment: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[] | undefined;
  readonly expiresAt: Date | undefined;
};

/** The service may accept unknown fields. The emulator refuses them, so that a misspelt field is noticed. */
const Body = z.strictObject({
  comment: z.string(),
  scopes: z.array(z.string().refine(isScope, "unknown scope")).min(1),
  tags: z.array(z.string().max(128)).min(1).optional(),
  time_to_live_in_seconds: z.int().positive().optional(),
});

/** The request, or what is wrong with it. */
export function parseKeyRequest(text: string, now: Date): KeyRequest | string {
  const body = parseJson(text);
  if (body === undefined) return "the body is not JSON";
  const { data, error } = Body.safeParse(body);
  if (error) return z.prettifyError(error);
  const scopes = grantedScopes(data.scopes);
  const kind = kindOfKey(scopes);
  if (kind === "half") return "a self-hosted key needs both self-hosted product scopes";
  const { comment, tags, time_to_live_in_seconds: seconds } = data;
  return {
    comment,
    scopes,
    tags: kind === "self-hosted" ? undefined : tags,
    expiresAt: seconds === undefined ? undefined : new Date(now.getTime() + seconds * 1000),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Scopes: what a key may do, and which scopes a new key gets.

const MEMBER_SCOPES = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** A star at the end of a scope matches any scope that begins with the text before it. */
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
function grantedScopes(asked: readonly string[]): string[] {
  const granted = asked.flatMap((name) => {
    if (name === SELF_HOSTED) return SELF_HOSTED_PRODUCTS;
    return name === "keys:write" ? ["keys:read", "keys:write"] : [name];
  });
  return [...new Set(granted)].sort();
}

/** "half": only one of the two self-hosted products, with which no key of either kind can be made. */
function kindOfKey(granted: readonly string[]): "regular" | "self-hosted" | "half" {
  const products = SELF_HOSTED_PRODUCTS.filter((product) => granted.includes(product)).length;
  if (products === 0) return "regular";
  return products === SELF_HOSTED_PRODUCTS.length ? "self-hosted" : "half";
}
