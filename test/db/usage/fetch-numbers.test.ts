// Fetch numbers, as two processes take them from one database, and the repair of a database whose tables were copied without its sequences, as
// logical replication does.

import { expect, test } from "vitest";
import { nextFetchNo, openFetchNumbers, raiseSequences } from "../../../src/db/usage/fetch-numbers.ts";
import { testDatabase } from "../../support/database.ts";
import { forgetSequences } from "../../support/forget-sequences.ts";
import { newSeries } from "../stored-usage.ts";

const { db } = await testDatabase();
const DAY = "2026-03-16";

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

test("a sequence that is not behind is left alone", async () => {
  await newSeries(db, "endpoint", { usage: { [DAY]: { listen: "1" } } });
  await raiseSequences(db);
  const before = await nextFetchNo(db);
  expect(await raiseSequences(db)).toEqual([]);
  expect(await nextFetchNo(db)).toBe(before + 1);
});

test("no number is given out twice while several processes raise the sequences at once", async () => {
  await newSeries(db, "endpoint", { usage: { [DAY]: { listen: "1" } } });
  await raiseSequences(db);
  await forgetSequences(db);
  const taken = (
    await Promise.all(
      [1, 2, 3, 4].map(async () => [await nextFetchNo(db), await raiseSequences(db), await nextFetchNo(db)]),
    )
  ).flatMap(([first, , last]) => [first, last]);
  expect(new Set(taken).size).toBe(taken.length);
});
