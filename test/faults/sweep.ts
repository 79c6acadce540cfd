// Runs many cases at once, counts them, and tells of each violation in one line how to see it again.

import { expect } from "vitest";
import { reportCases } from "./figures.ts";

/** FAULTS=all takes every point, FAULTS=ci (the default) every few, which ones by FAULTS_SEED, STRIDE=n every n-th; CASE=name one case. */
const { FAULTS = "ci", FAULTS_SEED = "1", CASE, STRIDE } = process.env;

const TAKES_ALL = FAULTS === "all";

/** Of a test that is a sweep. */
export const LIMIT = { timeout: (TAKES_ALL ? 120 : 20) * 60_000 };

/** Of each class that the program must tell apart: to try again, to give up one slice, to give up all. */
export const SQLSTATES = [
  ...["08006", "22021", "23505", "25006", "40001", "40P01", "53100"],
  ...["53200", "53300", "55P03", "57014", "57P01", "57P03", "58030"],
];

export type Sweep = {
  /** What is counted together in the figures. */
  readonly part: string;
  /** Where the cases are, to run one again. */
  readonly file: string;
  readonly test: string;
  /** By their names, which say all that a case depends on. */
  readonly cases: () => Promise<readonly string[]>;
  readonly atOnce: number;
  readonly run: (name: string) => Promise<readonly string[]>;
};

export async function sweep({ part, file, test, cases, atOnce, run }: Sweep): Promise<void> {
  // Each program that is started listens for the end of this process.
  process.setMaxListeners(8 * atOnce);
  const chosen = CASE === undefined ? await cases() : [CASE];
  process.stdout.write(`${part}: ${chosen.length} cases\n`);
  const startedMs = performance.now();
  const found: string[] = [];
  const waiting = chosen.values();
  const work = async () => {
    for (const name of waiting) {
      const repeat = `CASE='${name}' npx vitest run --config test/faults/vitest.config.ts ${file} -t '${test}'`;
      // A case that can't be run to its end is a finding too.
      const all = await run(name).catch((error: Error) => [`the case itself failed: ${error.stack}`]);
      for (const violation of all) process.stdout.write(`${violation}\n  repeat: ${repeat}\n`);
      found.push(...all.map((violation) => `${violation}; repeat: ${repeat}`));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, chosen.length) }, work));
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  reportCases({ part, cases: chosen.length, violations: found.length, seconds });
  expect(found).toEqual([]);
}

/** Every so many of what there is, and at least one: with each seed others. */
export function every<T>(stride: number, all: readonly T[]): readonly T[] {
  if (TAKES_ALL) return all;
  const step = Math.min(STRIDE === undefined ? stride : Number(STRIDE), all.length);
  return all.filter((_, index) => index % step === Number(FAULTS_SEED) % step);
}
