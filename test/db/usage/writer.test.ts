// Answers that arrive at the same time are stored together, but the result of each must not depend on the others. The last tests are about
// the fetch numbers that several processes take from one database.

import { setImmediate } from "node:timers/promises";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openFetchNumbers, raiseLaggingSequences } from "../../../src/db/usage/fetch-numbers.ts";
import { openWriter } from "../../../src/db/usage/writer.ts";
import { testDatabase } from "../../support/database.ts";
import { forgetSequences } from "../../support/forget-sequences.ts";
import { answerOf, newSeries, nextFetchNo, rowOf, shown, sliceOn, total } from "../stored-usage.ts";

const { db, read } = await testDatabase();
const DAY = "2026-03-16";
/** A writer that expects more answers. */
function openBusyWriter() {
  const writer = openWriter(db);
  void writer.trackRequest(() => new Promise<void>(() => {}));
  return writer.store;
}

/** The number of transactions that have written the stored rows. */
async function transactions(): Promise<number> {
  return (await read(sql`select distinct xmin::text from usage_export.slice_row`)).length;
}

test.each([
  { what: "more answers are coming", open: openBusyWriter, expected: 1 },
  { what: "no more answers are coming", open: () => openWriter(db).store, expected: 2 },
])("$what: an answer and the next one are stored in $expected transactions", async ({ open, expected }) => {
  const before = await transactions();
  const write = open();
  const [one, other] = [await newSeries(db), await newSeries(db)];
  const answers = [
    await answerOf(db, one.seriesId, { [DAY]: { listen: "1" } }),
    await answerOf(db, other.seriesId, { [DAY]: { listen: "1" } }),
  ];
  const stored: Promise<unknown>[] = [];
  for (const answer of answers) {
    stored.push(write(answer));
    await setImmediate();
  }
  await Promise.all(stored);
  expect((await transactions()) - before).toBe(expected);
});

test("an answer that can't be stored fails alone", async () => {
  const write = openBusyWriter();
  const [good, bad] = [await newSeries(db), await newSeries(db)];
  const [broken, later] = [await newSeries(db), await newSeries(db)];
  const answers = await Promise.all([
    answerOf(db, good.seriesId, { [DAY]: { listen: "1" } }),
    answerOf(db, bad.seriesId, { [DAY]: { listen: "1" }, "2026-03-17": { listen: "-1" } }),
    answerOf(db, broken.seriesId, [{ ...total(DAY, { requests: "1" }), columns: undefined as never }]),
    answerOf(db, later.seriesId, { [DAY]: { speak: "2" } }),
  ]);
  const outcomes = await Promise.allSettled(answers.map(write));
  expect(outcomes).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: "23514" } },
    { status: "rejected", reason: expect.any(TypeError) },
    { status: "fulfilled" },
  ]);
  expect(await shown(db, good.project)).toEqual({ [DAY]: { listen: "1" } });
  expect(await shown(db, bad.project)).toEqual({});
  expect(await shown(db, later.project)).toEqual({ [DAY]: { speak: "2" } });
});

test.each([
  ["a dated", false],
  ["an undated", true],
])("of %s answer and one of a later fetch for the same slice, the later is shown", async (_, undated) => {
  const write = openBusyWriter();
  const { project, seriesId } = await newSeries(db);
  const earlier = await answerOf(db, seriesId, [{ ...sliceOn(DAY, [rowOf("listen", "1")]), undated }], {
    undated: "day",
  });
  const later = await answerOf(db, seriesId, { [DAY]: { listen: "2" } });

  const results = await Promise.all([write(later), write(earlier)]);

  expect(results.map(({ slices }) => slices[0]?.decision)).toEqual(["replace", "stale"]);
  expect(await shown(db, project)).toEqual({ [DAY]: { listen: "2" } });
});

test("a later fetch has a higher number, even after all numbers taken in advance were used at once", async () => {
  const next = openFetchNumbers(db);
  const atOnce = () => Promise.all(Array.from({ length: 200 }, () => next()));
  const numbers = [await next(), ...(await atOnce()), await next()];
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
});

test("fetch numbers taken in advance are dropped after 50 ms", async () => {
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
  await raiseLaggingSequences(db);
  const last = () => read(sql`select last_value from usage_export.fetch_no`);
  const before = await last();
  expect(await raiseLaggingSequences(db)).toEqual([]);
  expect(await last()).toEqual(before);
});

test("no number is given out twice while several processes raise the sequences at once", async () => {
  await newSeries(db, "endpoint", { usage: { [DAY]: { listen: "1" } } });
  await raiseLaggingSequences(db);
  await forgetSequences(db);
  const taken = (
    await Promise.all(
      [1, 2, 3, 4].map(async () => [await nextFetchNo(db), await raiseLaggingSequences(db), await nextFetchNo(db)]),
    )
  ).flatMap(([first, , last]) => [first, last]);
  expect(new Set(taken).size).toBe(taken.length);
});
