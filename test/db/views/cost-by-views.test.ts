// What the service charges: every amount of every view equals the tests' own sum in whole numbers, over restated days.

import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { BILLING_GROUPINGS, type Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { usedKeys } from "../keys/written-ledger.ts";
import { type Bill, type BillingGrouping, billsOf, type Charge, inOrder, storeBills } from "../stored-charges.ts";
import { daysBack, newProject, view } from "../stored-usage.ts";

const { db, read } = await testDatabase();

const WINDOW = { start: "2026-03-16", end: "2026-03-17" };
const DAY = WINDOW.end;

/** The view's rows of the project; a dimension that the view does not have is null. */
async function shown(project: Project, name: string, where = sql`true`): Promise<readonly Bill[]> {
  const rows = await read(sql<{ bill: Bill }>`
    select json_build_object(
      'day', usage_date, 'accessor', v.row->>'accessor', 'deployment', v.row->>'deployment', 'line_item', v.row->>'line_item',
      'tags', v.row->>'tags', 'amount', trim_scale(amount)::text
    ) as bill
    from ${sql.id("bi", name)} b cross join lateral (select to_jsonb(b) as row) v
    where project_id = ${project.id} and currency = 'USD' and ${where}
  `);
  return inOrder(rows.map(({ bill }) => bill));
}

const OWN_VIEW: Readonly<Partial<Record<BillingGrouping, string>>> = {
  none: "cost_total",
  accessor: "cost_by_key",
  deployment: "cost_by_deployment",
  line_item: "cost_by_line_item",
  tags: "cost_by_tags",
};

const amount = fc.tuple(fc.bigInt({ min: -(10n ** 27n), max: 10n ** 28n }), fc.nat(28)).map(([digits, places]) => {
  const text = String(digits < 0n ? -digits : digits).padStart(places + 1, "0");
  const fraction = places > 0 ? `.${text.slice(-places)}` : "";
  return `${digits < 0n ? "-" : ""}${text.slice(0, text.length - places)}${fraction}`;
});
const charge: fc.Arbitrary<Charge> = fc.record({
  day: fc.constantFrom(WINDOW.start, WINDOW.end),
  accessor: fc.constantFrom("k1", "k2", null),
  deployment: fc.constantFrom("hosted", "dedicated"),
  line_item: fc.constantFrom("streaming::nova-3", "sync::aura-2", 'a "quoted"\\ name', null),
  tags: fc.constantFrom(null, ["b", "a"], ["a", "b", "a"], ["a"], [], ['{"x":1}', "é"]),
  dollars: fc.oneof(fc.constantFrom("0.1", "0.2", "0"), amount),
});

test("whatever is charged and restated, every amount of every grouping is the exact sum of the newest charges", async () => {
  const readings = fc.array(fc.array(charge, { maxLength: 12 }), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(readings, async (charges) => {
      const project = newProject();
      for (const one of charges) await storeBills(db, project, BILLING_GROUPINGS, WINDOW, one);
      const newest = charges.at(-1) ?? [];
      for (const grouping of BILLING_GROUPINGS) {
        const expected = billsOf(newest, grouping);
        expect(await shown(project, "cost_by_group", sql`"grouping" = ${grouping}`)).toEqual(expected);
        const own = OWN_VIEW[grouping];
        if (own) expect(await shown(project, own)).toEqual(expected);
      }
    }),
    { numRuns: 12 },
  );
});

test("costs under a filter are in cost_filtered alone", async () => {
  const project = newProject();
  const filter = { name: "of prod", features: {}, dimensions: { tags: "prod" } };
  const charges = [{ day: DAY, line_item: "sync::aura-2", dollars: "2" }];
  await storeBills(db, project, ["line_item"], WINDOW, charges, { filter });
  expect(await shown(project, "cost_filtered", sql`filter = 'of prod'`)).toEqual(billsOf(charges, "line_item"));
  expect(await shown(project, "cost_by_group")).toEqual([]);
  expect(await shown(project, "cost_by_line_item")).toEqual([]);
});

test("the keys of a rotation have one lineage", async () => {
  const project = newProject();
  const { rotation, keys } = await usedKeys(db, project);
  const accessors = [...keys, "made in the console", null];
  const charges = accessors.map((accessor, i) => ({ day: DAY, accessor, dollars: `${i + 1}` }));
  await storeBills(db, project, ["accessor"], WINDOW, charges);
  const rows = await view(db, "cost_by_key", project);
  expect(rows.map(({ amount, lineage }) => `${amount} ${lineage}`).sort()).toEqual([
    `1 ${rotation}`,
    `2 ${rotation}`,
    "3 made in the console",
    "4 null",
  ]);
  const named = rows.find(({ accessor }) => accessor === accessors[0]);
  expect(named).toMatchObject({ rotation, key_comment: expect.any(String) });
});

test("a day is final once it is not read again, unless its newest reading failed", async () => {
  const project = newProject();
  const day = await daysBack(db);
  const window = { start: day(9), end: day(1) };
  const charges = [9, 8, 1].map((back) => ({ day: day(back), dollars: "1" }));
  await storeBills(db, project, ["none"], window, charges, { windowDays: 7 });
  await sql`
    update usage_export.slice set status = 'failed' where usage_date = ${day(8)}
      and series_id = (select series_id from usage_export.series where project_id = ${project.id})
  `.execute(db);
  const rows = await view(db, "cost_total", project);
  expect(rows.map((row) => [row.usage_date, row.finality, row.is_final, row.revision])).toEqual([
    [day(9), "final", true, 1],
    [day(8), "final", false, 1],
    [day(1), "settling", false, 1],
  ]);
  expect(rows[0]).toMatchObject({ fetched_at: expect.any(Date), first_seen_at: expect.any(Date), extra_metrics: null });
});
