// Runs many cases at once, counts them, and tells of each violation in one line how to see it again.

import { expect } from "vitest";
import { reportCases } from "./figures.ts";
import { ONLY_CASE, SEED, TAKES_ALL } from "./scope.ts";

/** Of a test that is a sweep. */
export const LIMIT = { timeout: 12 * 60 * 60_000 };

export type Sweep = {
  /** What is counted together in the figures. */
  readonly part: string;
  readonly kind?: string;
  /** Which of all the points there are the cases take. */
  readonly points?: string;
  /** Where the cases are, to run one again. */
  readonly file: string;
  readonly test: string;
  /** By their names, which say all that a case depends on. */
  readonly cases: () => Promise<readonly string[]>;
  readonly atOnce: number;
  readonly run: (name: string) => Promise<readonly string[]>;
  /** How many cases there are in all, where these are every so many. */
  readonly among?: () => number;
  /** How many cases had no place for their fault to happen; asked when all are over. */
  readonly unreached?: () => number;
};

export async function sweep(sweep: Sweep): Promise<void> {
  const { part, kind, points = "1", file, test, atOnce, run, among, unreached = () => 0 } = sweep;
  // Each program that is started listens for the end of this process.
  process.setMaxListeners(8 * atOnce);
  const chosen = ONLY_CASE === undefined ? await sweep.cases() : [ONLY_CASE];
  process.stdout.write(`${part}: ${chosen.length} cases\n`);
  const startedMs = performance.now();
  const found: string[] = [];
  const waiting = chosen.values();
  const work = async () => {
    for (const name of waiting) {
      const repeat = `FAULTS_CASE='${name}' npx vitest run --config test/faults/vitest.config.ts ${file} -t '${test}'`;
      // A case that can't be run to its end is a finding too.
      const all = await run(name).catch((error: Error) => [`the case itself failed: ${error.stack}`]);
      for (const violation of all) process.stdout.write(`${violation}\n  repeat: ${repeat}\n`);
      found.push(...all.map((violation) => `${violation}; repeat: ${repeat}`));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, chosen.length) }, work));
  reportCases({
    part,
    ...(kind !== undefined && { kind }),
    points: ONLY_CASE === undefined ? points : "one",
    cases: chosen.length,
    ...(among && ONLY_CASE === undefined && { among: among() }),
    unreached: unreached(),
    violations: found.length,
    seconds: Math.round((performance.now() - startedMs) / 1000),
  });
  expect(found).toEqual([]);
}

/** All of them, or in CI every so many. */
export function every<T>(stride: number, all: readonly T[]): readonly T[] {
  return everyNth(TAKES_ALL ? 1 : stride, all);
}

/** At least one, where there is one: with each seed others. */
export function everyNth<T>(stride: number, all: readonly T[]): readonly T[] {
  const step = Math.min(stride, all.length);
  return all.filter((_, index) => index % step === SEED % step);
}
