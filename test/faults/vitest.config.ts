import path from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { LIMITS } from "../support/limits.ts";

/** These files start first: otherwise the last of them would run alone for half of the time. */
const LONGEST = ["sabotage", "leaks", "export", "rotation", "migration", "worker", "backfill", "answers"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.indexOf(path.basename(moduleId, ".faults.ts"));
      return at === -1 ? LONGEST.length : at;
    };
    return files.toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  root: path.join(import.meta.dirname, "../.."),
  test: {
    include: ["test/faults/**/*.faults.ts"],
    globalSetup: "test/support/global-setup.ts",
    sequence: { sequencer: LongestFirst },
    pool: "forks",
    maxWorkers: 3,
    maxConcurrency: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    expect: LIMITS.expect,
  },
});
