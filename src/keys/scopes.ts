// What scopes and roles give. Pure.

const SELF_HOSTED_PRODUCTS = ["self-hosted:product:api", "self-hosted:product:engine"];

/** Scopes a request may name by one word. */
const SHORTHANDS: Readonly<Record<string, readonly string[]>> = { "self-hosted:products": SELF_HOSTED_PRODUCTS };

const MEMBER = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

/** A role gives its scopes; one with a star gives all that begin so. */
const ROLES: Readonly<Record<string, readonly string[]>> = {
  member: MEMBER,
  admin: ["member", ...MEMBER, "members:*", "admins:*", "billing:read"],
  owner: ["*"],
};

/** The scopes that were asked for and not granted. What comes back is in another order, expanded, and often more. */
export function missingScopes(asked: readonly string[], granted: readonly string[]): string[] {
  return expanded(asked).filter((scope) => !holdsScope(granted, scope) && !holdsParts(granted, scope));
}

export function holdsScope(granted: readonly string[], scope: string): boolean {
  return granted.some((held) => {
    const given = [...expanded([held]), ...(ROLES[held] ?? [])];
    return given.some((one) => one === scope || (one.endsWith("*") && scope.startsWith(one.slice(0, -1))));
  });
}

/** What is wrong with the scopes of a request; undefined where nothing is. */
export function scopesFault(asked: readonly string[]): string | undefined {
  const products = SELF_HOSTED_PRODUCTS.filter((product) => expanded(asked).includes(product));
  return products.length === 1
    ? `a self-hosted key has both of ${SELF_HOSTED_PRODUCTS.join(" and ")}, or self-hosted:products for the two; got ${products[0]} alone`
    : undefined;
}

/** The two kinds of key are made by the same call, and told apart by what is asked for. */
export function makesSelfHosted(asked: readonly string[]): boolean {
  return expanded(asked).some((scope) => SELF_HOSTED_PRODUCTS.includes(scope));
}

function expanded(scopes: readonly string[]): string[] {
  return scopes.flatMap((scope) => SHORTHANDS[scope] ?? [scope]);
}

/** A role that the service wrote out as the scopes it gives. */
function holdsParts(granted: readonly string[], role: string): boolean {
  const parts = ROLES[role]?.filter((part) => ROLES[part] === undefined) ?? [];
  return parts.length > 0 && parts.every((part) => granted.includes(part));
}
