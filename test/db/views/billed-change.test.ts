// bi.billed_change: why what the service charges changed, by an independent calculation from the charges.

import fc from "fast-check";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { forgetAll } from "../reported-usage.ts";
import { billed } from "../stored-billing.ts";
import { type BillingGrouping, type Charge, decimal, exact, storeBills, sumOf } from "../stored-charges.ts";
import { newProject, store } from "../stored-usage.ts";

const { db } = await testDatabase();

beforeEach(async () => {
  await forgetAll(db);
  await sql`truncate usage_export.configured, usage_export.price cascade`.execute(db);
});

const dayOf = (n: number) => `2026-03-${String(n).padStart(2, "0")}`;
const charge = (n: number, dollars: string, part: Partial<Charge> = {}): Charge => ({
  day: dayOf(n),
  dollars,
  ...part,
});

type ChangeRow = {
  readonly grouping: string;
  readonly part: string;
  readonly group_value: string | null;
  readonly before: string;
  readonly after: string;
  readonly status: string | null;
};

async function changes(from: number, to: number, grouping?: string): Promise<readonly ChangeRow[]> {
  const { rows } = await sql<ChangeRow>`
    select "grouping", part, group_value, trim_scale(amount_before)::text as before, trim_scale(amount_after)::text as after, status
    from bi.billed_change(${dayOf(from)}::date, ${dayOf(to)}::date)
    where ${grouping ?? null}::text is null or "grouping" = ${grouping ?? null}
    order by "grouping", part desc, group_value collate "C"
  `.execute(db);
  return rows;
}

const lines = (rows: readonly ChangeRow[]) =>
  rows.map(({ part, group_value: value, before, after, status }) => `${part} ${value} ${before}>${after} ${status}`);

test("line items are new, gone or changed, keys count by rotation, and credits are below zero", async () => {
  const project = newProject();
  await sql`insert into usage_export.rotation (name) values ('exporter') on conflict do nothing`.execute(db);
  for (const key of ["k1", "k2"]) {
    await sql`
      insert into usage_export.api_key (intent_id, rotation, project_id, project, api_key_id, state, comment, scopes_asked)
      values (${key}, 'exporter', ${project.id}, ${project.name}, ${key}, 'retired', 'c', '{}')
    `.execute(db);
  }
  await storeBills(db, project, ["none", "line_item", "accessor"], { start: dayOf(10), end: dayOf(11) }, [
    charge(10, "1.5", { line_item: "a", accessor: "k1" }),
    charge(10, "2", { line_item: "b", accessor: "other" }),
    charge(11, "1.75", { line_item: "a", accessor: "k2" }),
    charge(11, "-0.25", { line_item: "credit", accessor: null }),
  ]);
  expect(lines(await changes(11, 11, "line_item"))).toEqual([
    "group a 1.5>1.75 changed",
    "group b 2>0 vanished",
    "group credit 0>-0.25 new",
  ]);
  expect(lines(await changes(11, 11, "accessor"))).toEqual([
    "group exporter 1.5>1.75 changed",
    "group other 2>0 vanished",
    "group null 0>-0.25 new",
  ]);
  expect(lines(await changes(11, 11, "none"))).toEqual(["group null 3.5>1.5 changed"]);
});

test("a grouping by several dimensions explains each of them, and is the total where there is no other", async () => {
  await storeBills(db, newProject(), ["line_item,tags"], { start: dayOf(10), end: dayOf(11) }, [
    charge(10, "1", { line_item: "a", tags: ["x"] }),
    charge(10, "2", { line_item: "a", tags: ["y"] }),
    charge(11, "5", { line_item: "b", tags: ["x"] }),
  ]);
  expect(
    (await changes(11, 11)).map(({ grouping, group_value: v, before, after }) => `${grouping} ${v} ${before}>${after}`),
  ).toEqual(["line_item a 3>0", "line_item b 0>5", "none null 3>5", 'tags ["x"] 1>5', 'tags ["y"] 2>0']);
});

test("a day that was not read, or has a charge without an amount, is not compared", async () => {
  const project = newProject();
  await storeBills(db, project, ["none"], { start: dayOf(10), end: dayOf(12) }, [
    charge(10, "1"),
    charge(11, "2"),
    charge(12, "4"),
  ]);
  expect(lines(await changes(12, 13))).toEqual(["group null 1>4 changed", "days not compared null 2>0 null"]);
  const { rows } = await sql<{ id: number }>`select series_id as id from usage_export.series`.execute(db);
  await store(db, rows[0]?.id ?? 0, [billed(dayOf(12), "none", [[null]])], { grouping: "none", cliffGuard: "off" });
  expect(lines(await changes(12, 13))).toEqual(["group null 0>0 same", "days not compared null 3>0 null"]);
});

const GROUPINGS: readonly BillingGrouping[] = ["none", "line_item", "tags", "accessor,line_item"];
const DIMENSIONS = { line_item: "line_item", tags: "tags", accessor: "accessor" } as const;

test("on random charges each dimension's rows are the charges' own sums, and add up to the change of bi.cost_total", async () => {
  const digits = fc
    .tuple(
      fc.integer({ min: -99, max: 9999 }),
      fc.integer({ min: 0, max: 999_999_999 }),
      fc.integer({ min: 0, max: 999_999_999 }),
    )
    .map(([whole, a, b]) => `${whole}.${String(a).padStart(9, "0")}${String(b).padStart(9, "0")}`);
  const oneCharge = fc.record({
    day: fc.integer({ min: 10, max: 15 }).map(dayOf),
    accessor: fc.constantFrom("k1", "k2", null),
    line_item: fc.constantFrom("a", "b", null),
    tags: fc.constantFrom(["x"], ["x", "y"], []),
    dollars: digits,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(oneCharge, { maxLength: 25 }),
      fc.integer({ min: 1, max: 3 }),
      async (charges, length) => {
        await forgetAll(db);
        await storeBills(db, newProject(), GROUPINGS, { start: dayOf(10), end: dayOf(15) }, charges);
        const [from, to] = [13, 12 + length];
        const rows = await changes(from, to);
        const sumIn = (start: number, end: number, of = charges) =>
          sumOf(of.filter(({ day }) => day >= dayOf(start) && day <= dayOf(end)).map(({ dollars }) => dollars));
        const sums = (of: typeof charges) => [sumIn(from - length, from - 1, of), sumIn(from, to, of)] as const;
        for (const [grouping, name] of Object.entries(DIMENSIONS)) {
          const own = rows.filter((row) => row.grouping === grouping);
          const expected = [...Map.groupBy(charges, (one) => shownValue(one[name])).entries()].flatMap(
            ([value, of]) => {
              const [before, after] = sums(of);
              return before === "0" && after === "0" ? [] : [`${value} ${before}>${after}`];
            },
          );
          const shown = own.filter(({ before, after }) => before !== "0" || after !== "0");
          expect(shown.map((row) => `${row.group_value} ${row.before}>${row.after}`).sort()).toEqual(expected.sort());
          const change = own.reduce((sum, row) => sum + exact(row.after) - exact(row.before), 0n);
          const [before, after] = sums(charges);
          expect(decimal(change)).toBe(decimal(exact(after) - exact(before)));
        }
        const [before, after] = sums(charges);
        expect(rows.filter(({ grouping }) => grouping === "none")).toMatchObject([{ before, after }]);
      },
    ),
    { numRuns: 40 },
  );
});

function shownValue(value: string | readonly string[] | null | undefined): string | null {
  return Array.isArray(value)
    ? value.length > 0
      ? JSON.stringify([...value].sort())
      : null
    : ((value as string | null | undefined) ?? null);
}
