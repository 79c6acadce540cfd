// Runs many cases concurrently, counts them, and prints for each violation the command that repeats its case.

import { expect } from "vitest";
import { reportCases } from "./figures.ts";
import { ONLY_CASE, SEED, TAKES_ALL } from "./scope.ts";

/** The time limit of a test that is a sweep. */
export const LIMIT = { timeout: 12 * 60 * 60_000 };

export type Sweep = {
  readonly part: string;
  /** Every how many points the cases take one. */
  readonly points?: string;
  /** The file and the test that repeat a case. */
  readonly file: string;
  readonly test: string;
  /** The names of the cases. A name contains everything that its case depends on. */
  readonly cases: () => Promise<readonly string[]>;
  readonly atOnce: number;
  readonly run: (name: string) => Promise<readonly string[]>;
  /** How many cases there are in all, if `cases` are only some of them. */
  readonly among?: () => number;
  /** How many cases ended before their fault could happen. Called when all cases are over. */
  readonly unreached?: () => number;
};

export async function sweep(sweep: Sweep): Promise<void> {
  const { part, points = "1", file, test, atOnce, run, among, unreached = () => 0 } = sweep;
  // Each started program adds a listener for the end of this process.
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
    points: ONLY_CASE === undefined ? points : "one",
    cases: chosen.length,
    ...(among && ONLY_CASE === undefined && { among: among() }),
    unreached: unreached(),
    violations: found.length,
    seconds: Math.round((performance.now() - startedMs) / 1000),
  });
  expect(found).toEqual([]);
}

/** All of them, or in CI every n-th. */
export function every<T>(stride: number, all: readonly T[]): readonly T[] {
  return everyNth(TAKES_ALL ? 1 : stride, all);
}

/** At least one, if there is any. Another seed takes others. */
export function everyNth<T>(stride: number, all: readonly T[]): readonly T[] {
  const step = Math.min(stride, all.length);
  return all.filter((_, index) => index % step === SEED % step);
}
