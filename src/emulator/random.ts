// Chance that comes out the same every time: numbers and identifiers from a text. Pure.

/** Draws in [0, 1), always the same ones for the same parts. */
export function randomFrom(...parts: readonly (string | number)[]): () => number {
  let state = hash(JSON.stringify(parts));
  // mulberry32: small, and even enough for made-up usage.
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function uuidFrom(...parts: readonly (string | number)[]): string {
  const random = randomFrom(...parts);
  const digits = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join("");
  return `${digits(8)}-${digits(4)}-4${digits(3)}-a${digits(3)}-${digits(12)}`;
}

export function pick<T>(choices: readonly [T, ...T[]], random: () => number): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value;
}
