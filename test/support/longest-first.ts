// The order in which Vitest starts test files.

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files whose paths contain one of these parts start first, in the order of the parts: otherwise one of them would run alone at the end. */
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
