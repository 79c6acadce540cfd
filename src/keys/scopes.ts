// What scopes and roles give. Pure.

/** Scopes a request may name by one word. */
const SHORTHANDS: Readonly<Record<string, readonly string[]>> = {
  "self-hosted:products": ["self-hosted:product:api", "self-hosted:product:engine"],
};

/** A role gives its scopes; one with a star gives all that begin so. */
const ROLES: Readonly<Record<string, readonly string[]>> = {
  member: ["project:*", "keys:*", "usage:*"],
  admin: ["member", "project:*", "keys:*", "usage:*", "members:*", "admins:*", "billing:read"],
  owner: ["*"],
};

/** The scopes that were asked for and not granted. What comes back is in another order, expanded, and often more. */
export function missingScopes(asked: readonly string[], granted: readonly string[]): string[] {
  return asked.flatMap((scope) => SHORTHANDS[scope] ?? [scope]).filter((scope) => !holdsScope(granted, scope));
}

export function holdsScope(granted: readonly string[], scope: string): boolean {
  return granted.some((held) => {
    const given = [held, ...(SHORTHANDS[held] ?? []), ...(ROLES[held] ?? [])];
    return given.some((one) => one === scope || (one.endsWith("*") && scope.startsWith(one.slice(0, -1))));
  });
}
