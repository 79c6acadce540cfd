// What a rotation is configured to do, and what the scopes and roles of its keys allow. The configuration has checked the values
// before. Pure.

/** Where a new key is delivered, besides the sealed store. */
export type Sink =
  | { /** Absolute. */ readonly file: string }
  | {
      /** The program and its arguments; there is no shell, and the key comes on standard input. */
      readonly command: readonly string[];
      readonly timeoutSeconds: number;
    };

export type RotationJob = {
  /** The name in the ledger. */
  readonly name: string;
  /** The name in the configuration, of a rotation that is there for many projects. */
  readonly group?: string;
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
  return "file" in sink ? `file ${sink.file}` : `command ${JSON.stringify(sink.command)}`;
}

// What scopes and roles allow. Pure.

const SELF_HOSTED_PRODUCTS = ["self-hosted:product:api", "self-hosted:product:engine"];
const MEMBER_SCOPES = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** The scopes of each role, and of a name for several scopes. A star stands for every scope that begins with the text before it. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  member: MEMBER_SCOPES,
  admin: ["member", ...MEMBER_SCOPES, "members:*", "admins:*", "billing:read"],
  owner: ["*"],
  "self-hosted:products": SELF_HOSTED_PRODUCTS,
};

/** The requested scopes that were not granted. The service answers in another order, with the parts of a name, and often with more. */
export function missingScopes(asked: readonly string[], granted: readonly string[]): string[] {
  return asked.filter((scope) => !holdsScope(granted, scope));
}

/** Whether the scope is granted by itself, as a part of a role, or by all of its own parts. */
export function holdsScope(granted: readonly string[], scope: string): boolean {
  const given = granted.flatMap((held) => [held, ...(PARTS[held] ?? [])]);
  if (given.some((one) => one === scope || (one.endsWith("*") && scope.startsWith(one.slice(0, -1))))) return true;
  return PARTS[scope]?.every((part) => holdsScope(granted, part)) === true;
}

/** Either scope lets a key read the breakdown; sources differ on which one it needs. */
export function readsUsage(scopes: readonly string[]): boolean {
  return holdsScope(scopes, "project:read") || holdsScope(scopes, "usage:read");
}

/** One call makes both kinds of key; the requested scopes decide which. */
export function makesSelfHosted(asked: readonly string[]): boolean {
  return asked.some((scope) => scope === "self-hosted:products" || SELF_HOSTED_PRODUCTS.includes(scope));
}
