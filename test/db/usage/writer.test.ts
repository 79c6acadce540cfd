// Answers that arrive at the same time are stored together. The result of each must not depend on the others.

import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { type AnswerToStore, openRunWriter } from "../../../src/db/usage/writer.ts";
import type { NormalisedSlice } from "../../../src/usage/answer-rows.ts";
import { testDatabase } from "../../support/database.ts";
import { newSeries, rowOf, rowsOn, shown, slice } from "../stored-usage.ts";

const { db } = await testDatabase();
const DAY = "2026-03-16";
const NEXT_DAY = "2026-03-17";
/** A writer that expects more answers. */
function openBusyWriter() {
  const writer = openRunWriter(db);
  void writer.whileAsking(() => new Promise<void>(() => {}));
  return writer.store;
}

async function incoming(seriesId: number, slices: readonly NormalisedSlice[], part: Partial<AnswerToStore> = {}) {
  return {
    seriesId,
    grouping: "endpoint",
    fetchNo: await nextFetchNo(db),
    runId: randomUUID(),
    emptyGuard: "confirm",
    undated: "snapshot",
    cliffGuard: "confirm",
    askedMs: performance.now(),
    serviceChoosesDays: false,
    slices,
    ...part,
  } as const satisfies AnswerToStore;
}

/** How many transactions have written the stored rows. */
async function transactions(): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(distinct xmin::text)::integer as count from usage_export.snapshot_row
  `.execute(db);
  return rows[0]?.count ?? 0;
}

test("answers of several series that come together are stored in one transaction", async () => {
  const before = await transactions();
  const write = openBusyWriter();
  const series = await Promise.all(Array.from({ length: 5 }, () => newSeries(db)));
  const answers = await Promise.all(
    series.map(({ seriesId }, i) =>
      incoming(seriesId, [slice(DAY, { listen: String(i) }), slice(NEXT_DAY, { speak: "9" })]),
    ),
  );

  const results = await Promise.all(answers.map(write));

  expect(results).toEqual(
    answers.map(() => ({
      slices: [
        { day: DAY, decision: "replace" },
        { day: NEXT_DAY, decision: "replace" },
      ],
      rowsChanged: 2,
    })),
  );
  for (const [i, { project }] of series.entries()) {
    expect(await shown(db, project)).toEqual({ [DAY]: { listen: String(i) }, [NEXT_DAY]: { speak: "9" } });
  }
  expect((await transactions()) - before).toBe(1);
});

test.each([
  { what: "more answers are coming", open: openBusyWriter, expected: 1 },
  { what: "no more answers are coming", open: () => openRunWriter(db).store, expected: 2 },
])("$what: an answer and the next one are stored in $expected transactions", async ({ open, expected }) => {
  const before = await transactions();
  const write = open();
  const [one, other] = [await newSeries(db), await newSeries(db)];
  const answers = [
    await incoming(one.seriesId, [slice(DAY, { listen: "1" })]),
    await incoming(other.seriesId, [slice(DAY, { listen: "1" })]),
  ];
  const stored: Promise<unknown>[] = [];
  for (const answer of answers) {
    stored.push(write(answer));
    await setImmediate();
  }
  await Promise.all(stored);
  expect((await transactions()) - before).toBe(expected);
});

test("data that Postgres refuses fails only its own answer", async () => {
  const write = openBusyWriter();
  const [good, bad, later] = [await newSeries(db), await newSeries(db), await newSeries(db)];
  const answers = await Promise.all([
    incoming(good.seriesId, [slice(DAY, { listen: "1" })]),
    incoming(bad.seriesId, [rowsOn(DAY, [rowOf("listen", "-1")])]),
    incoming(later.seriesId, [slice(DAY, { speak: "2" })]),
  ]);
  const outcomes = await Promise.allSettled(answers.map(write));
  expect(outcomes).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: "23514" } },
    { status: "fulfilled" },
  ]);
  expect(await shown(db, good.project)).toEqual({ [DAY]: { listen: "1" } });
  expect(await shown(db, bad.project)).toEqual({});
  expect(await shown(db, later.project)).toEqual({ [DAY]: { speak: "2" } });
});

test("an answer that a mistake in this program can't store fails alone", async () => {
  const write = openBusyWriter();
  const [good, bad] = [await newSeries(db), await newSeries(db)];
  const answers = await Promise.all([
    incoming(good.seriesId, [slice(DAY, { listen: "1" })]),
    incoming(bad.seriesId, [{ ...slice(DAY, { listen: "1" }), columns: undefined as never }]),
  ]);
  const outcomes = await Promise.allSettled(answers.map(write));
  expect(outcomes).toMatchObject([{ status: "fulfilled" }, { status: "rejected", reason: expect.any(TypeError) }]);
  expect(await shown(db, good.project)).toEqual({ [DAY]: { listen: "1" } });
});

test("two answers for one slice are stored one after the other, and the later fetch is shown", async () => {
  const write = openBusyWriter();
  const { project, seriesId } = await newSeries(db);
  const earlier = await incoming(seriesId, [slice(DAY, { listen: "1" })]);
  const later = await incoming(seriesId, [slice(DAY, { listen: "2" })]);

  const results = await Promise.all([write(later), write(earlier)]);

  expect(results.map(({ slices }) => slices[0]?.decision)).toEqual(["replace", "stale"]);
  expect(await shown(db, project)).toEqual({ [DAY]: { listen: "2" } });
});
