// Tells the table of figures what the tests of a file were about that are no sweeps.

import { afterAll, afterEach } from "vitest";
import { reportCases } from "./figures.ts";

/** Called at the top of a file whose tests are a case each. */
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

/** Of a test that is about many cases at once, and looks at them all in the end. */
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
