import { execFileSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

const HEAP = path.join(import.meta.dirname, "../src/heap.ts");
const MB = 1024 * 1024;

test("keepMemoryFlat enlarges V8's space for new objects only once", () => {
  // In a process of its own, because keepMemoryFlat sets flags of V8, which hold for a whole process.
  const script = `
    import { getHeapSpaceStatistics } from "node:v8";
    import { keepMemoryFlat } from ${JSON.stringify(HEAP)};
    const sizes = [];
    for (let round = 0; round < 2; round++) {
      keepMemoryFlat();
      const kept = Array.from({ length: 300_000 }, (_, i) => ({ i }));
      const space = getHeapSpaceStatistics().find((one) => one.space_name === "new_space");
      // Using the array here keeps it alive until now.
      sizes.push(space.space_size + 0 * kept.length);
    }
    console.log(JSON.stringify(sizes));
  `;
  const [first, second] = JSON.parse(
    execFileSync(process.execPath, ["--input-type=module-typescript", "-e", script], { encoding: "utf8" }),
  );
  // V8 enlarges the space by a factor, so it may exceed the wanted 16 MB.
  expect(first).toBeGreaterThanOrEqual(16 * MB);
  expect(first).toBeLessThanOrEqual(32 * MB);
  expect(second).toBe(first);
});
