// Fetch numbers, as two processes take them from one database.

import { expect, test } from "vitest";
import { nextFetchNo, openFetchNumbers } from "../../../src/db/usage/fetch-numbers.ts";
import { testDatabase } from "../../support/database.ts";

const { db } = await testDatabase();

test("a later fetch has a higher number, even among fetches that start together", async () => {
  const next = openFetchNumbers(db);
  const numbers = [await next(), ...(await Promise.all([next(), next(), next()])), await next()];
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
});

test("more fetches than there are spare numbers each get a number of their own", async () => {
  const next = openFetchNumbers(db);
  const numbers = await Promise.all(Array.from({ length: 200 }, () => next()));
  expect(new Set(numbers).size).toBe(200);
});

test("a spare number is used for 50 ms: after that a fetch has a higher number than those that other processes took before", async () => {
  let nowMs = 1_000;
  const next = openFetchNumbers(db, () => nowMs);
  await next();
  nowMs += 50;
  const theirs = await nextFetchNo(db);
  expect(await next()).toBeLessThan(theirs);
  nowMs += 1;
  expect(await next()).toBeGreaterThan(theirs);
});
