// What a rotation is configured to do, and what the scopes and roles of its keys allow. The configuration has checked the values
// before. Pure.

/** Where a new key is delivered, besides the sealed store. */
export type Sink =
  | { readonly kind: "file" /** Absolute. */; readonly path: string }
  | {
      readonly kind: "command";
      /** The program and its arguments; there is no shell, and the key comes on standard input. */
      readonly command: readonly string[];
      readonly timeoutSeconds: number;
    };

export const MAX_AGE_DAYS_DEFAULT = 30;
export const GRACE_DAYS_DEFAULT = 7;

export type RotationJob = {
  readonly name: string;
  /** A cron expression, in `timezone`. */
  readonly schedule: string;
  readonly timezone: string;
  readonly project: { readonly id: string; readonly name: string };
  readonly comment: string;
  /** At least one. */
  readonly scopes: readonly string[];
  /** The tags of a regular key. A self-hosted key has none, so none are sent for it. */
  readonly tags: readonly string[];
  readonly maxAgeDays: number;
  /** For how many days a replaced key must not have been seen in use before it is due for removal. */
  readonly graceDays: number;
  /** More than maxAgeDays and graceDays together. If it is left out, keys do not expire. */
  readonly expiresInDays?: number;
  readonly deliver: readonly Sink[];
  /**
   * What happens to a key that is due for removal. "delete": it is deleted at the service once the service's usage shows that nobody uses
   * it.
   */
  readonly retire: "keep" | "delete";
};

/** A name for a sink. It changes only if the file or the command changes. */
export function sinkId(sink: Sink): string {
  return sink.kind === "file" ? `file ${sink.path}` : `command ${JSON.stringify(sink.command)}`;
}

/** The comment by which a key is found at the service. */
export function commentOf({ comment }: RotationJob, intentId: string): string {
  return `${comment} [${intentId}]`;
}

// What scopes and roles allow. Pure.

const SELF_HOSTED_PRODUCTS = ["self-hosted:product:api", "self-hosted:product:engine"];

/** Names that a request may use for several scopes. */
const SCOPE_SHORTHANDS: Readonly<Record<string, readonly string[]>> = { "self-hosted:products": SELF_HOSTED_PRODUCTS };

const MEMBER_SCOPES = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** The scopes of a role. One that ends in a star stands for every scope that begins with the text before the star. */
const ROLES: Readonly<Record<string, readonly string[]>> = {
  member: MEMBER_SCOPES,
  admin: ["member", ...MEMBER_SCOPES, "members:*", "admins:*", "billing:read"],
  owner: ["*"],
};

/** The requested scopes that were not granted. The service answers in another order, with shorthands expanded, and often with more. */
export function missingScopes(asked: readonly string[], granted: readonly string[]): string[] {
  return expandScopes(asked).filter((scope) => !holdsScope(granted, scope) && !holdsRole(granted, scope));
}

export function holdsScope(granted: readonly string[], scope: string): boolean {
  return granted.some((held) => {
    const given = [...expandScopes([held]), ...(ROLES[held] ?? [])];
    return given.some((one) => one === scope || (one.endsWith("*") && scope.startsWith(one.slice(0, -1))));
  });
}

/** One call makes both kinds of key; the requested scopes decide which. */
export function makesSelfHosted(asked: readonly string[]): boolean {
  return expandScopes(asked).some((scope) => SELF_HOSTED_PRODUCTS.includes(scope));
}

function expandScopes(scopes: readonly string[]): string[] {
  return scopes.flatMap((scope) => SCOPE_SHORTHANDS[scope] ?? [scope]);
}

/** Whether every single scope of the role was granted. */
function holdsRole(granted: readonly string[], role: string): boolean {
  const parts = ROLES[role]?.filter((part) => ROLES[part] === undefined) ?? [];
  return parts.length > 0 && parts.every((part) => granted.includes(part));
}
