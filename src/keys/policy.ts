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
  /** The name in the configuration; left out if it is `name`, because the rotation is for one project. */
  readonly jobName?: string;
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
  /** "delete": a key that is due for removal is deleted once the service's usage shows that nobody uses it. */
  readonly retire: "keep" | "delete";
};

/** A name for a sink. It changes only if the file or the command changes. */
export function sinkId(sink: Sink): string {
  return "file" in sink ? `file ${sink.file}` : `command ${JSON.stringify(sink.command)}`;
}

// What scopes and roles allow. Pure.

const SELF_HOSTED_PRODUCTS = ["self-hosted:product:api", "self-hosted:product:engine"];
const MEMBER_SCOPES = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** What each role, or name for several scopes, includes. A star stands for every scope that begins with the text before it. */
const INCLUDED: Readonly<Record<string, readonly string[]>> = {
  member: MEMBER_SCOPES,
  admin: ["member", ...MEMBER_SCOPES, "members:*", "admins:*", "billing:read"],
  owner: ["*"],
  "self-hosted:products": SELF_HOSTED_PRODUCTS,
};

/** The requested scopes that were not granted. The service may answer in another order, with what a name includes, and with more. */
export function missingScopes(asked: readonly string[], granted: readonly string[]): string[] {
  return asked.filter((scope) => !holdsScope(granted, scope));
}

/** Whether the scope is granted by itself, by a role that includes it, or by all scopes that it includes. */
export function holdsScope(granted: readonly string[], scope: string): boolean {
  const given = granted.flatMap((held) => [held, ...(INCLUDED[held] ?? [])]);
  if (given.some((one) => one === scope || (one.endsWith("*") && scope.startsWith(one.slice(0, -1))))) return true;
  return INCLUDED[scope]?.every((included) => holdsScope(granted, included)) === true;
}

/** Either scope lets a key read the breakdown; sources differ on which one it needs. */
export function readsUsage(scopes: readonly string[]): boolean {
  return holdsScope(scopes, "project:read") || holdsScope(scopes, "usage:read");
}

/** One call makes both kinds of key; the requested scopes decide which. */
export function makesSelfHosted(asked: readonly string[]): boolean {
  return asked.some((scope) => scope === "self-hosted:products" || SELF_HOSTED_PRODUCTS.includes(scope));
}
