// What the scopes and roles of keys allow. Pure.

const SELF_HOSTED_PRODUCTS = ["self-hosted:product:api", "self-hosted:product:engine"];
const MEMBER_SCOPES = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** The scopes that a role, or a name for several scopes, includes. "x*" stands for every scope that begins with "x". */
const INCLUDED: Readonly<Record<string, readonly string[]>> = {
  member: MEMBER_SCOPES,
  admin: ["member", ...MEMBER_SCOPES, "members:*", "admins:*", "billing:read"],
  owner: ["*"],
  "self-hosted:products": SELF_HOSTED_PRODUCTS,
};

/** Whether the scope is granted: under its own name, by a role that includes it, or as all the scopes that it includes. */
export function holdsScope(granted: readonly string[], scope: string): boolean {
  const given = granted.flatMap((held) => [held, ...(INCLUDED[held] ?? [])]);
  if (given.some((one) => one === scope || (one.endsWith("*") && scope.startsWith(one.slice(0, -1))))) return true;
  return INCLUDED[scope]?.every((included) => holdsScope(granted, included)) === true;
}

/** Whether a create with these scopes makes a self-hosted key, which has no tags. */
export function makesSelfHosted(asked: readonly string[]): boolean {
  return asked.some((scope) => scope === "self-hosted:products" || SELF_HOSTED_PRODUCTS.includes(scope));
}
