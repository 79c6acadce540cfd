// Helpers of the benchmarks: median, ratio and time.

/** Makes an empty database and returns its address. */
export type NewDatabase = () => Promise<string>;

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The first number divided by the second, as text, such as "1.5 ×". */
export function ratio(one: number, other: number): string {
  return `${(one / other).toFixed(2).padStart(6)} ×`;
}

export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1_000;
}
