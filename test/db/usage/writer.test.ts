// Answers that arrive at the same time are stored together. The result of each must not depend on the others.

import { setImmediate } from "node:timers/promises";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openRunWriter } from "../../../src/db/usage/writer.ts";
import { testDatabase } from "../../support/database.ts";
import { answerOf, newSeries, shown, total } from "../stored-usage.ts";

const { db, read } = await testDatabase();
const DAY = "2026-03-16";
/** A writer that expects more answers. */
function openBusyWriter() {
  const writer = openRunWriter(db);
  void writer.whileAsking(() => new Promise<void>(() => {}));
  return writer.store;
}

/** How many transactions have written the stored rows. */
async function transactions(): Promise<number> {
  return (await read(sql`select distinct xmin::text from usage_export.snapshot_row`)).length;
}

test.each([
  { what: "more answers are coming", open: openBusyWriter, expected: 1 },
  { what: "no more answers are coming", open: () => openRunWriter(db).store, expected: 2 },
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

test("an answer that Postgres refuses, or that a mistake of the program can't store, fails alone", async () => {
  const write = openBusyWriter();
  const [good, bad] = [await newSeries(db), await newSeries(db)];
  const [broken, later] = [await newSeries(db), await newSeries(db)];
  const answers = await Promise.all([
    answerOf(db, good.seriesId, { [DAY]: { listen: "1" } }),
    answerOf(db, bad.seriesId, { [DAY]: { listen: "-1" } }),
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

test("two answers for one slice are stored one after the other, and the later fetch is shown", async () => {
  const write = openBusyWriter();
  const { project, seriesId } = await newSeries(db);
  const earlier = await answerOf(db, seriesId, { [DAY]: { listen: "1" } });
  const later = await answerOf(db, seriesId, { [DAY]: { listen: "2" } });

  const results = await Promise.all([write(later), write(earlier)]);

  expect(results.map(({ slices }) => slices[0]?.decision)).toEqual(["replace", "stale"]);
  expect(await shown(db, project)).toEqual({ [DAY]: { listen: "2" } });
});
