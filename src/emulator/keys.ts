// The API keys of all projects. Secrets are kept as digests, so nothing here can reveal one again.

import { createHash, randomBytes, randomUUID } from "node:crypto";
import { apiKeyId, uuidFrom } from "./catalogue.ts";
import { grantedScopes, type KeyRequest, mayDo } from "./key-request.ts";

/** A key made in the service's web console, where alone a first key can be made. Each belongs to another person. */
export type ConsoleKey = {
  readonly secret: string;
  readonly projectId: string;
  readonly scopes: readonly string[];
};

export type ApiKey = {
  readonly apiKeyId: string;
  readonly projectId: string;
  /** The person it belongs to. A key that a key created belongs to the same one. */
  readonly memberId: string;
  readonly origin: "console" | "created";
  readonly comment: string;
  readonly scopes: readonly string[];
  readonly tags: readonly string[] | undefined;
  /** With microseconds, as the service writes it. */
  readonly created: string;
  readonly expiresAt: Date | undefined;
};

export type KeyState = ApiKey & { readonly state: "active" | "expired" | "deleted" };

export type KeyStore = {
  /** The key that works with this secret. */
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
  for (const { secret, projectId, scopes } of consoleKeys) {
    const n = countByProject.get(projectId) ?? 0;
    countByProject.set(projectId, n + 1);
    const id = apiKeyId(seed, projectId, n);
    const identity = { apiKeyId: id, projectId, memberId: uuidFrom("member", id), origin: "console" as const };
    const comment = "made in the console";
    add(secret, { ...identity, comment, scopes: grantedScopes(scopes), tags: undefined, expiresAt: undefined }, now);
  }

  return {
    find(secret, at) {
      const key = byDigest.get(digestOf(secret));
      return key && stateOf(key, at) === "active" ? key : undefined;
    },
    create({ projectId, memberId }, request, at) {
      const secret = randomBytes(20).toString("hex");
      const identity = { apiKeyId: randomUUID(), projectId, memberId, origin: "created" as const };
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

/** A Date has no microseconds: the key's number stands for them. */
function withMicroseconds(instant: Date, n: number): string {
  return instant.toISOString().replace("Z", `${String(n % 1000).padStart(3, "0")}Z`);
}
