// bi.usage_by_single_tag and its like: each set is counted under each of its values.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { storeBills } from "../stored-charges.ts";
import { type Numbers, newProject, newSeries, rowOf, rowsOn, store, type ViewRow, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";

type TagSet = readonly [tags: unknown, numbers: Numbers];

async function storeSets(sets: readonly TagSet[]): Promise<Project> {
  const { project, seriesId } = await newSeries(db, "tags");
  const rows = sets.map(([tags, numbers]) => rowOf(tags, numbers, null, "tags"));
  await store(db, seriesId, [rowsOn(DAY, rows)], { grouping: "tags" });
  return project;
}

async function byTag(project: Project): Promise<readonly ViewRow[]> {
  const rows = await view(db, "usage_by_single_tag", project);
  return rows.toSorted((a, b) => (String(a.tag) < String(b.tag) ? -1 : 1));
}

test("usage with two tags counts under both, and the overlap is said", async () => {
  const project = await storeSets([
    [["prod"], { requests: "10", hours: "0.1" }],
    [["prod", "eu"], { requests: "4", hours: "0.2" }],
    [["eu", "test"], { requests: "1" }],
  ]);
  expect(await byTag(project)).toMatchObject([
    { tag: "eu", requests: "5", shared_requests: "5", hours: "0.2", usage_date: DAY, finality: "final" },
    { tag: "prod", requests: "14", shared_requests: "4", hours: "0.3" },
    { tag: "test", requests: "1", shared_requests: "1", hours: null, tokens_in: null },
  ]);
});

test.each(["model", "feature_set"] as const)(
  "each %s that stands alone or in a set is counted as itself",
  async (grouping) => {
    const { project, seriesId } = await newSeries(db, grouping);
    const sets: readonly TagSet[] = [
      ["nova-3", { requests: "10", hours: "0.1" }],
      [["nova-3", "aura-2"], { requests: "4", hours: "0.2" }],
      [["nova-3", null], { requests: "2" }],
      ['["nova-3"]', { requests: "7" }],
      ["a\0b", { requests: "6" }],
      [null, { requests: "3" }],
    ];
    await store(
      db,
      seriesId,
      [
        rowsOn(
          DAY,
          sets.map(([value, of]) => rowOf(value, of, null, grouping)),
        ),
      ],
      { grouping },
    );
    const name = grouping === "model" ? "model" : "feature";
    const rows = await view(db, `usage_by_single_${name}`, project);
    expect(rows.map((row) => [row[name], row.requests, row.shared_requests, row.hours])).toEqual(
      expect.arrayContaining([
        // 10 + 4 + 2, of which 4 with another one.
        ["nova-3", "16", "4", "0.3"],
        ["aura-2", "4", "4", "0.2"],
        ['["nova-3"]', "7", "0", null],
        ["a\\u0000b", "6", "0", null],
        [null, "3", "0", null],
      ]),
    );
    expect(rows).toHaveLength(5);
  },
);

test("a charge with two tags counts under both, and the overlap is said", async () => {
  const project = newProject();
  const charges = [
    { day: DAY, tags: ["prod"], dollars: "10.25" },
    { day: DAY, tags: ["prod", "eu"], dollars: "4.5" },
    { day: DAY, tags: ["eu", "test"], dollars: "-1" },
    { day: DAY, tags: null, dollars: "0.75" },
  ];
  await storeBills(db, project, ["tags"], { start: DAY, end: DAY }, charges);
  const rows = await view(db, "cost_by_single_tag", project);
  const amounts = rows.map((row) => [row.tag, row.amount, row.shared_amount, row.currency]);
  expect(amounts.sort()).toEqual([
    [null, "0.75", "0", "USD"],
    ["eu", "3.5", "3.5", "USD"],
    ["prod", "14.75", "4.5", "USD"],
    ["test", "-1", "-1", "USD"],
  ]);
  expect(rows[0]).toMatchObject({ usage_date: DAY, finality: "final", is_final: true, fetched_at: expect.any(Date) });
});

test.each<[string, unknown]>([
  ["null", null],
  ["an empty set", []],
  ["an absent value", undefined],
  ["a set of null", [null]],
])("usage without tags is one row whose tag is NULL: %s", async (_, tags) => {
  const project = await storeSets([
    [tags, { requests: "3" }],
    [["prod", null], { requests: "2" }],
  ]);
  expect(await byTag(project)).toMatchObject([
    { tag: null, requests: "3", shared_requests: "0" },
    { tag: "prod", requests: "2", shared_requests: "0" },
  ]);
});

test("whatever a tag is made of, its requests are those of the sets that have it", async () => {
  const tag = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 6 }),
    fc.constantFrom("\0", "\\u0000", "\\\\u0000", "\\\0", "\0\0", '"', "null"),
  );
  const sets = fc.uniqueArray(
    fc.record({ tags: fc.uniqueArray(tag, { maxLength: 4 }), requests: fc.bigInt(1n, 10n ** 24n) }),
    { maxLength: 8, selector: ({ tags }) => JSON.stringify([...tags].sort()) },
  );
  await fc.assert(
    fc.asyncProperty(sets, async (some) => {
      const project = await storeSets(some.map(({ tags, requests }) => [tags, { requests: String(requests) }]));
      const expected = new Map<string | null, bigint>();
      for (const { tags, requests } of some) {
        // Postgres has no NUL, so it is shown as JSON writes it.
        const shown = tags.length === 0 ? [null] : tags.map((one) => one.replaceAll("\0", "\\u0000"));
        for (const one of shown) expected.set(one, (expected.get(one) ?? 0n) + requests);
      }
      const rows = await view(db, "usage_by_single_tag", project);
      expect(new Map(rows.map((row) => [row.tag, BigInt(String(row.requests))]))).toEqual(expected);
    }),
    { numRuns: 40 },
  );
});
