// The emulator's API keys, the requests that create them, and their scopes.

import { randomBytes, randomUUID } from "node:crypto";
import { z } from "zod";
import { apiKeyId } from "./usage.ts";

/** A key that was made in the service's web console. A project's first key can only be made there. */
export type ConsoleKey = {
  readonly secret: string;
  readonly projectId: string;
  readonly scopes: readonly string[];
  /** The key may use every project of the account. */
  readonly isAccountKey?: boolean;
  readonly comment?: string;
};

const WORKLOAD_COMMENTS = ["call centre", "mobile app", "voice agent", "batch archive", "research", "website"];

/** Keys for the made-up usage of a project: pages show the usage of each key under the key's comment. */
export function keysOfMadeUpUsage(projectId: string): ConsoleKey[] {
  const secret = () => randomBytes(20).toString("hex");
  return WORKLOAD_COMMENTS.map((comment) => ({ projectId, comment, scopes: ["usage:read"], secret: secret() }));
}

export type ApiKey = RequestedKey & {
  readonly apiKeyId: string;
  readonly projectId: string;
  readonly origin: "console" | "created";
  /** With microseconds, as the service writes it. */
  readonly created: string;
  /** Whether the key may use every project of the account. Keys that it creates may, too. */
  readonly isAccountKey: boolean;
};

export type KeyAndState = ApiKey & { readonly state: "active" | "expired" | "deleted" };

export class KeyStore {
  readonly #bySecret = new Map<string, ApiKey>();
  readonly #deletedIds = new Set<string>();

  constructor(consoleKeys: readonly ConsoleKey[], now: Date) {
    for (const { secret, projectId, scopes, isAccountKey = false, comment = "made in the console" } of consoleKeys) {
      const id = apiKeyId(projectId, this.activeKeysOf(projectId, now).length);
      const requested = { comment, scopes: grantedScopes(scopes), tags: undefined, expiresAt: undefined };
      this.#add(secret, { apiKeyId: id, projectId, isAccountKey, origin: "console", ...requested }, now);
    }
  }

  #add(secret: string, key: Omit<ApiKey, "created">, createdAt: Date): ApiKey {
    const added = { ...key, created: createdAt.toISOString().replace("Z", "000Z") };
    this.#bySecret.set(secret, added);
    return added;
  }

  find(secret: string, at: Date): ApiKey | undefined {
    const key = this.#bySecret.get(secret);
    return key && this.#stateOf(key, at) === "active" ? key : undefined;
  }

  create({ projectId, isAccountKey }: ApiKey, requested: RequestedKey, at: Date) {
    const secret = randomBytes(20).toString("hex");
    const identity = { apiKeyId: randomUUID(), projectId, isAccountKey, origin: "created" } as const;
    return { secret, key: this.#add(secret, { ...identity, ...requested }, at) };
  }

  activeKeysOf(projectId: string, at: Date): readonly ApiKey[] {
    return this.keysAndStates(at).filter((key) => key.projectId === projectId && key.state === "active");
  }

  remove({ apiKeyId }: ApiKey): void {
    this.#deletedIds.add(apiKeyId);
  }

  /** All keys, also expired and deleted ones, oldest first. */
  keysAndStates(at: Date): KeyAndState[] {
    return [...this.#bySecret.values()].map((key) => ({ ...key, state: this.#stateOf(key, at) }));
  }

  #stateOf({ apiKeyId, expiresAt }: ApiKey, at: Date): KeyAndState["state"] {
    if (this.#deletedIds.has(apiKeyId)) return "deleted";
    return expiresAt && expiresAt <= at ? "expired" : "active";
  }
}

/** The service may accept unknown fields. The emulator refuses them, to catch misspelt ones. */
const Body = z.strictObject({
  comment: z.string(),
  scopes: z.array(z.string().refine(isScope, "unknown scope")).min(1),
  tags: z.array(z.string().max(128)).min(1).optional(),
  time_to_live_in_seconds: z.int().positive().optional(),
});

/** Returns the requested key, or a text that says what is wrong with the request. */
export function parseKeyRequest(text: string, now: Date) {
  const { data, error } = Body.safeParse(jsonOrUndefined(text));
  if (error) return z.prettifyError(error);
  const { comment, tags, time_to_live_in_seconds: seconds } = data;
  const expiresAt = seconds === undefined ? undefined : new Date(now.getTime() + seconds * 1000);
  return { comment, scopes: grantedScopes(data.scopes), tags, expiresAt };
}

type RequestedKey = Exclude<ReturnType<typeof parseKeyRequest>, string>;

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MEMBER_SCOPES = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** A star at the end of a scope matches any scope that begins with the text before it. */
const ROLES: ReadonlyMap<string, readonly string[]> = new Map([
  ["member", MEMBER_SCOPES],
  ["admin", [...MEMBER_SCOPES, "members:*", "admins:*", "billing:read"]],
  ["owner", ["*"]],
]);

/** Scopes that a request may ask for, but that the service lists as other scopes. */
const SHORTHANDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["self-hosted:products", ["self-hosted:product:api", "self-hosted:product:engine"]],
  ["keys:write", ["keys:read", "keys:write"]],
]);

export function mayDo(granted: readonly string[], scope: string): boolean {
  return granted
    .flatMap((name) => ROLES.get(name) ?? [name])
    .some((name) => (name.endsWith("*") ? scope.startsWith(name.slice(0, -1)) : name === scope));
}

/** A role's name, or a scope's: words with colons between them. */
function isScope(name: string): boolean {
  return ROLES.has(name) || /^[a-z][a-z_-]*(:[a-z][a-z_-]*)+$/.test(name);
}

/** The scopes as the service lists them: roles by name, shorthands expanded, sorted. */
function grantedScopes(asked: readonly string[]): string[] {
  return [...new Set(asked.flatMap((name) => SHORTHANDS.get(name) ?? [name]))].sort();
}
