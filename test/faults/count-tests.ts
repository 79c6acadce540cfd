// Tells the table of figures how many tests of a file there were, each a case of its own.

import { afterAll, afterEach } from "vitest";
import { reportCases } from "./figures.ts";

/** Called at the top of a file. */
export function countTests(part: string): void {
  const startedMs = performance.now();
  let cases = 0;
  let violations = 0;
  afterEach(({ task }) => {
    cases++;
    if (task.result?.state === "fail") violations++;
  });
  afterAll(() => reportCases({ part, cases, violations, seconds: Math.round((performance.now() - startedMs) / 1000) }));
}
