// Calls that are batched, remembered, or made one at a time.

import { setImmediate as nextRound } from "node:timers/promises";
import { expect, test } from "vitest";
import { batched, memoizeAsync, oneAtATime } from "../src/async.ts";

const THREE_ITEMS = { weightMax: 3, weightOf: () => 1 };

/** Returns a batched function that doubles numbers and fails for negative ones, and the batches that it has run. */
function doubling(options: Partial<Parameters<typeof batched<number, number>>[1]> = {}) {
  const batches: (readonly number[])[] = [];
  const double = batched<number, number>(
    async (items) => {
      batches.push(items);
      await nextRound();
      return items.map((item) => (item < 0 ? new Error(`${item} is negative`) : item * 2));
    },
    { ...THREE_ITEMS, ...options },
  );
  return { double, batches };
}

test("items that arrive while a batch runs form the next batch", async () => {
  const { double, batches } = doubling();
  const first = double(1);
  while (batches.length === 0) await Promise.resolve();
  const later = [2, 3].map(double);
  expect(await Promise.all([first, ...later])).toEqual([2, 4, 6]);
  expect(batches).toEqual([[1], [2, 3]]);
});

test("a batch weighs at most weightMax, unless a single item is heavier", async () => {
  const { double, batches } = doubling({ weightMax: 5, weightOf: (item) => item });
  await Promise.all([2, 3, 1, 9, 4, 1, 1].map(double));
  expect(batches).toEqual([[2, 3], [1], [9], [4, 1], [1]]);
});

test("an item that fails does not fail the others of its batch", async () => {
  const { double } = doubling();
  const [bad, good] = [double(-1), double(4)];
  await expect(bad).rejects.toThrow("-1 is negative");
  expect(await good).toBe(8);
});

test("the failure of a batch fails all its items and no later batch", async () => {
  let calls = 0;
  const run = batched<number, number>(async (items) => {
    if (calls++ === 0) throw new Error("lost");
    return [...items];
  }, THREE_ITEMS);
  const lost = await Promise.allSettled([run(1), run(2)]);
  expect(lost.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await run(3)).toBe(3);
});

test("a batch that is not full also takes the items that arrive during beforeBatch", async () => {
  const { promise: pause, resolve: endPause } = Promise.withResolvers<void>();
  const { double, batches } = doubling({ beforeBatch: () => pause });
  const first = double(1);
  await nextRound();
  const second = double(2);
  endPause();
  await Promise.all([first, second]);
  expect(batches).toEqual([[1, 2]]);
});

test("exactly `concurrency` batches run at once", async () => {
  let running = 0;
  let runningMax = 0;
  const run = batched<number, number>(
    async (items) => {
      runningMax = Math.max(runningMax, ++running);
      await nextRound();
      running--;
      return [...items];
    },
    { weightMax: 1, concurrency: 2 },
  );
  // Items that do not fit in the first batch begin a second one beside it.
  const all = [0, 1, 2, 3, 4, 5].map((item) => run(item));
  expect(await Promise.all(all)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(runningMax).toBe(2);
});

test("no batch is empty, even if a concurrent batch took every item", async () => {
  const { double, batches } = doubling({ concurrency: 2, beforeBatch: () => nextRound() });
  const first = [1, 2, 3].map(double);
  await nextRound();
  await Promise.all([...first, double(4)]);
  expect(batches).toEqual([[1, 2, 3], [4]]);
});

test("memoizeAsync keeps each value for a time that depends on the value", async () => {
  let now = 0;
  let asked = 0;
  const memo = memoizeAsync<number>(
    (answer) => (answer === 1 ? 10 : 100),
    () => now,
  );
  const ask = async () => {
    // Each call takes 5 ms, so value 1 is kept from 5 to 15 ms, and value 2 from 20 to 120 ms.
    now += 5;
    return ++asked;
  };
  const at = async (moment: number) => {
    now = moment;
    return memo("key", ask);
  };
  expect([await at(0), await at(14), await at(15), await at(119), await at(120)]).toEqual([1, 1, 2, 2, 3]);
});

/** A function `read`, and the reads that have begun, in their order. The test resolves or rejects each of them. */
function readings() {
  const begun: PromiseWithResolvers<string>[] = [];
  const read = () => {
    const reading = Promise.withResolvers<string>();
    begun.push(reading);
    return reading.promise;
  };
  return { begun, read };
}

test("reads run one at a time, even after one that failed", async () => {
  const { begun, read } = readings();
  const ask = oneAtATime(10_000);
  const asked = [ask(read), ask(read), ask(read)];
  await nextRound();
  expect(begun).toHaveLength(1);
  begun[0]?.reject("no");
  await expect(asked[0]).rejects.toBe("no");
  await nextRound();
  expect(begun).toHaveLength(2);
  begun[1]?.resolve("second");
  await asked[1];
  await nextRound();
  begun[2]?.resolve("third");
  expect(await Promise.all(asked.slice(1))).toEqual(["second", "third"]);
});

test("a read whose caller has given up does not start", async () => {
  const { begun, read } = readings();
  const ask = oneAtATime(50);
  const late = { status: "rejected", reason: expect.objectContaining({ message: "not read within 0.05 s" }) };
  expect(await Promise.allSettled([ask(read), ask(read)])).toEqual([late, late]);
  begun[0]?.resolve("too late");
  const next = ask(read);
  await nextRound();
  begun[1]?.resolve("next");
  expect(await next).toEqual("next");
  expect(begun).toHaveLength(2);
});
