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
export function isScope(name: string): boolean {
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
export function kindOfKey(granted: readonly string[]): "regular" | "self-hosted" | "half" {
  const products = SELF_HOSTED_PRODUCTS.filter((product) => granted.includes(product)).length;
  if (products === 0) return "regular";
  return products === SELF_HOSTED_PRODUCTS.length ? "self-hosted" : "half";
}
