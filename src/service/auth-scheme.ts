// How a call shows its key in the Authorization header.

/** The word before the key; with "none" the header is the key alone. `init` tries them in this order. */
export const AUTH_SCHEMES = ["Token", "Bearer", "none"] as const;

export type AuthScheme = (typeof AUTH_SCHEMES)[number];
