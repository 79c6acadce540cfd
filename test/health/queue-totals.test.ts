import { expect, test } from "vitest";
import { queueTotals } from "../../src/health/state.ts";

const textsOf = (...queue: Parameters<typeof queueTotals>[0]) => queueTotals(queue).map(({ text }) => text);

test("an empty queue has 0 jobs in each state", () => {
  expect(textsOf()).toEqual(["0 waiting", "0 waiting for a retry", "0 in progress", "0 given up in the last day"]);
});

test("the jobs of one state are added up over all queues", () => {
  const texts = textsOf(
    { queue: "export", state: "waiting", jobs: 3 },
    { queue: "rotation", state: "waiting", jobs: 1 },
    { queue: "export", state: "active", jobs: 2 },
  );
  expect(texts).toEqual(["4 waiting", "0 waiting for a retry", "2 in progress", "0 given up in the last day"]);
});
