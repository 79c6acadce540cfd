import fc from "fast-check";

/** Any character. fast-check has it as `unit: "binary"`, whose first use takes 3 s. */
const CHARACTER = fc.integer({ min: 0, max: 0x10f7ff }).map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));

/** Any text without half of a surrogate pair. */
export const anyText = (limits: fc.StringConstraints = {}) => fc.string({ ...limits, unit: CHARACTER });
