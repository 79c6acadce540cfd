// The order in which Vitest starts test files.

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Starts the files whose paths contain these parts first: otherwise one of them would run alone at the end. The others keep their order. */
export function longestFirst(parts: readonly string[]): typeof BaseSequencer {
  const rank = ({ moduleId }: TestSpecification) => {
    const at = parts.findIndex((part) => moduleId.includes(part));
    return at === -1 ? parts.length : at;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
    }
  };
}
