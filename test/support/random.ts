// Seeded random numbers for made-up usage: the same seed gives the same ones, on every machine.

export type Random = {
  /** In [0, 1). */
  readonly uniform: () => number;
  /** Between -3 and 3, with a mean of 0 and a standard deviation of 1, like a normal distribution without its tails. */
  readonly normal: () => number;
};

/** mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed * 0x9e3779b1;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  // A sum, because logarithms may differ in their last digit from one machine to another.
  const normal = () => (uniform() + uniform() + uniform() - 1.5) * 2;
  return { uniform, normal };
}
