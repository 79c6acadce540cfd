// Reports tests that are not sweeps to the table of figures.

import { afterAll, afterEach } from "vitest";
import { reportCases } from "./figures.ts";

/** Called at the top of a file in which each test is one case. */
export function countTests(part: string, kind: string): void {
  const startedMs = performance.now();
  let cases = 0;
  let violations = 0;
  afterEach(({ task }) => {
    cases++;
    if (task.result?.state === "fail") violations++;
  });
  afterAll(() => reportCases({ part, kind, cases, violations, seconds: secondsSince(startedMs) }));
}

/** Reports a test that checks many cases together. If it fails, it counts as one violation. */
export async function countCases(part: string, kind: string, cases: number, work: () => Promise<void>): Promise<void> {
  const startedMs = performance.now();
  let violations = 1;
  try {
    await work();
    violations = 0;
  } finally {
    reportCases({ part, kind, cases, violations, seconds: secondsSince(startedMs) });
  }
}

export function secondsSince(startedMs: number): number {
  return Math.round((performance.now() - startedMs) / 1000);
}
