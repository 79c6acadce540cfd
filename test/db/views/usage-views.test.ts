// The views of usage: which series each one shows, the finality of a day, and sets of values.

import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { USAGE_DIMENSIONS } from "../../../src/usage/dimensions.ts";
import { type Filter, type Grouping, seenFilter } from "../../../src/usage/series.ts";
import { anyText } from "../../support/any-text.ts";
import { testDatabase } from "../../support/database.ts";
import { DIARIZED, storeSeries } from "../reported-usage.ts";
import { storeBills } from "../stored-charges.ts";
import {
  daysBack,
  type Numbers,
  newProject,
  newSeries,
  store,
  textsOf,
  total,
  type Usage,
  view,
} from "../stored-usage.ts";

const { db, read } = await testDatabase();

const DAY = "2026-03-17";

test("the total has one row for each project and day", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "none", usage: { [DAY]: { hours: "1.5", requests: "3" } } },
    { project, grouping: "model", usage: { [DAY]: { "nova-3": "3" } } },
  ]);
  expect(await view(db, "usage_total", project)).toEqual([
    {
      ...{ project_id: project.id, project: project.name, usage_date: DAY, hours: "1.5", requests: "3" },
      ...{ total_hours: null, agent_hours: null, tokens_in: null, tokens_out: null, tts_characters: null },
      ...{ extra_metrics: null, finality: "final", revision: 1 },
      ...{ first_seen_at: expect.any(Date), last_changed_at: expect.any(Date) },
    },
  ]);
});

test("each view of one dimension shows its series alone, without the total and filtered usage", async () => {
  const project = newProject();
  await storeSeries(db, [
    ...USAGE_DIMENSIONS.map((grouping) => ({ project, grouping, usage: { [DAY]: { [`a ${grouping}`]: "1" } } })),
    // A filter without conditions is all usage, whatever its name.
    {
      project,
      grouping: "none",
      filter: { ...DIARIZED, name: "every", features: {} },
      usage: { [DAY]: { requests: "7" } },
    },
    { project, grouping: "endpoint", filter: DIARIZED, usage: { [DAY]: { listen: "4" } } },
  ]);
  expect(await view(db, "usage_total", project)).toMatchObject([{ requests: "7" }]);
  const shownBy = (dimension: string) => (dimension === "tags" ? '["a tags"]' : `a ${dimension}`);
  for (const dimension of USAGE_DIMENSIONS) {
    const rows = await view(db, `usage_by_${dimension}`, project);
    expect(rows.map((row) => row[dimension])).toEqual([shownBy(dimension)]);
  }
  const rows = await view(db, "usage_by_group", project);
  const shown = rows.map(({ grouping, group_value, lineage, requests }) => [grouping, group_value, lineage, requests]);
  expect(shown.toSorted()).toEqual(USAGE_DIMENSIONS.map((one) => [one, shownBy(one), shownBy(one), "1"]).toSorted());
  expect(await view(db, "usage_filtered", project)).toMatchObject([
    { grouping: "endpoint", filter: "diarized", group_value: "listen", requests: "4" },
  ]);
});

test("bi.usage_by_two_dimensions shows only usage that is filtered by one dimension and grouped by another", async () => {
  const project = newProject();
  const stored: readonly (readonly [Filter, Grouping, Usage[string]])[] = [
    [seenFilter("accessor", "k1"), "model", { "nova-3": "3", "aura-2": "1" }],
    [seenFilter("tags", "prod"), "model", { "nova-3": "2" }],
    [{ name: "named", features: {}, dimensions: { endpoint: "listen" } }, "accessor", { k1: "3" }],
    [seenFilter("accessor", "k1"), "none", { requests: "4" }],
    [seenFilter("accessor", "k1"), "accessor", { k1: "4" }],
    [{ name: "two", features: {}, dimensions: { accessor: "k1", method: "sync" } }, "model", { "nova-3": "1" }],
    [{ name: "featured", features: { diarize: "true" }, dimensions: { accessor: "k1" } }, "model", { "nova-3": "1" }],
    [DIARIZED, "model", { "nova-3": "1" }],
    [{ name: "all", features: {}, dimensions: {} }, "model", { "nova-3": "5" }],
  ];
  await storeSeries(
    db,
    stored.map(([filter, grouping, rows]) => ({ project, filter, grouping, usage: { [DAY]: rows } })),
  );
  const rows = await view(db, "usage_by_two_dimensions", project);
  const shown = rows.map((row) => [row.dimension, row.value, row.grouping, row.group_value, row.requests].join(" "));
  expect(shown.sort()).toEqual([
    "accessor k1 model aura-2 1",
    "accessor k1 model nova-3 3",
    "endpoint listen accessor k1 3",
    "tags prod model nova-3 2",
  ]);
});

test("a day is open until it is read after its end, unless its numbers are undated", async () => {
  const back = await daysBack(db);
  const dated = await newSeries(db, "none", { windowDays: 7, usage: { [back(0)]: { requests: "1" } } });
  const undated = await newSeries(db, "none");
  await store(db, undated.seriesId, [{ ...total(back(0), { requests: "1" }), undated: true }], { undated: "day" });
  const ids = [dated.project.id, undated.project.id];
  // An hour after the end of the day, nothing has been read again.
  const rows = await read(sql`
    select project_id, finality from bi.usage_as_of(${`${back(-1)}T01:00:00Z`}::timestamptz) where project_id = any(${ids}) order by finality
  `);
  expect(rows).toEqual([
    { project_id: undated.project.id, finality: "final" },
    { project_id: dated.project.id, finality: "open" },
  ]);
});

const END_OF_DAY = "2026-03-18T00:00:00Z";

test.each<[string, number | null, string | null, string, string]>([
  ["a day that is not over", 7, null, "2026-03-17T23:59:59Z", "open"],
  ["a day that is just over and was not read since", 7, null, END_OF_DAY, "open"],
  ["a day that was last read before it ended, long ago", 7, null, "2027-01-01T00:00:00Z", "open"],
  ["a day that will be read after this moment", 7, "2026-03-18T02:00:00Z", "2026-03-18T01:00:00Z", "open"],
  ["a day that was read after it was over", 7, "2026-03-18T02:00:00Z", "2026-03-18T03:00:00Z", "settling"],
  ["a day in the last second of its window", 7, "2026-03-18T02:00:00Z", "2026-03-24T23:59:59Z", "settling"],
  ["a day that is no longer in the window", 7, "2026-03-18T02:00:00Z", "2026-03-25T00:00:00Z", "final"],
  ["the only day of a window of one day", 1, END_OF_DAY, END_OF_DAY, "settling"],
  ["the only day of a window of one day, a day later", 1, END_OF_DAY, "2026-03-19T00:00:00Z", "final"],
  ["a day that no window reads again", null, END_OF_DAY, END_OF_DAY, "final"],
  ["a day that no window reads again, not read since it ended", null, null, END_OF_DAY, "open"],
])(
  "%s (window of %s days, read after its end at %s, seen at %s) is %s",
  async (_, windowDays, closedAt, at, finality) => {
    for (const zone of ["UTC", "Asia/Tokyo", "America/Los_Angeles"]) {
      const { rows } = await db.transaction().execute(async (tx) => {
        await sql`select set_config('timezone', ${zone}, true)`.execute(tx);
        return await sql`
        select usage_export.finality('2026-03-17', ${windowDays}::integer, ${closedAt}::timestamptz, ${at}::timestamptz)
      `.execute(tx);
      });
      expect(rows).toEqual([{ finality }]);
    }
  },
);

// The views bi.*_by_single_*: a set is counted under each of its values.

type Sets = readonly (readonly [value: unknown, Numbers | string])[];

const storeSets = async (sets: Sets, grouping: Grouping = "tags") =>
  (await newSeries(db, grouping, { usage: { [DAY]: sets } })).project;

test.each(["model", "feature_set"] as const)("each %s has its usage alone and its usage in sets", async (grouping) => {
  const project = await storeSets(
    [
      ["nova-3", { requests: "10", hours: "0.1" }],
      [["nova-3", "aura-2"], { requests: "4", hours: "0.2" }],
      [["nova-3", null], "2"],
      ['["nova-3"]', "7"],
      ["a\0b", "6"],
      [null, "3"],
    ],
    grouping,
  );
  const name = grouping === "model" ? "model" : "feature";
  const rows = await view(db, `usage_by_single_${name}`, project);
  expect(textsOf(rows, `${name} requests shared_requests hours`).toSorted()).toEqual(
    // nova-3 has 10 + 4 + 2, of which it shares 4 with aura-2.
    ["nova-3 16 4 0.3", "aura-2 4 4 0.2", '["nova-3"] 7 0 null', "a\\u0000b 6 0 null", "null 3 0 null"].sort(),
  );
});

test("a charge with two tags counts under both, as shared", async () => {
  const project = newProject();
  const charge = (dollars: string, ...tags: readonly string[]) => ({ day: DAY, tags, dollars });
  const charges = [charge("10.25", "prod"), charge("4.5", "prod", "eu"), charge("-1", "eu", "test"), charge("0.75")];
  await storeBills(db, project, ["tags"], { start: DAY, end: DAY }, charges);
  const rows = await view(db, "cost_by_single_tag", project);
  expect(textsOf(rows, "tag amount shared_amount currency").toSorted()).toEqual([
    "eu 3.5 3.5 USD",
    "null 0.75 0 USD",
    "prod 14.75 4.5 USD",
    "test -1 -1 USD",
  ]);
  expect(rows[0]).toMatchObject({ usage_date: DAY, finality: "final", is_final: true, fetched_at: expect.any(Date) });
});

test("a tag of any characters has the requests of all sets with it", async () => {
  const tag = fc.oneof(
    anyText({ minLength: 1, maxLength: 6 }),
    fc.constantFrom("\0", "\\u0000", "\\\\u0000", "\\\0", "\0\0", '"', "null"),
  );
  const sets = fc.uniqueArray(
    fc.record({ tags: fc.uniqueArray(tag, { maxLength: 4 }), requests: fc.bigInt(1n, 10n ** 24n) }),
    { maxLength: 8, selector: ({ tags }) => JSON.stringify([...tags].sort()) },
  );
  await fc.assert(
    fc.asyncProperty(sets, async (some) => {
      const project = await storeSets(some.map(({ tags, requests }) => [tags, String(requests)]));
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
