import { expect, test } from "vitest";
import { type Filter, GROUPINGS, type Grouping } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { DIARIZED, storeSeries } from "../reported-usage.ts";
import { billed } from "../stored-billing.ts";
import { storeBills } from "../stored-charges.ts";
import { configured, type Numbers, newProject, newSeries, register, store, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";

/** Stores the total, if there is one, and the groups for one day of a new project. Returns the differences. */
async function reconciled(
  totals: readonly Numbers[],
  groups: readonly Numbers[],
  { grouping = "endpoint", ...rest }: { readonly grouping?: Grouping; readonly filter?: Filter } = {},
) {
  const project = newProject();
  await storeSeries(db, [
    { project, ...rest, grouping: "none", usage: { [DAY]: totals[0] ?? {} } },
    { project, ...rest, grouping, usage: { [DAY]: groups.map((numbers, i) => [`value ${i}`, numbers]) } },
  ]);
  return view(db, "reconciliation", project);
}

test.each<[string, readonly Numbers[], readonly Numbers[], difference?: string]>([
  ["the same", [{ requests: "3" }], [{ requests: "1" }, { requests: "2" }]],
  [
    "the same but for the rounding of doubles",
    [{ hours: "0.3" }],
    [{ hours: "0.1" }, { hours: "0.20000000000000001" }],
  ],
  [
    "the same but for the rounding of large doubles",
    [{ hours: "1619724.2069444444" }],
    [{ hours: "1619724.20694444" }],
  ],
  ["the same in the only metric", [{ requests: "1" }], [{ requests: "1" }]],
  ["both empty", [], []],
  ["a total of zeros and no group", [{ requests: "0" }], []],
  ["a total without any group", [{ requests: "3" }], [], "-3"],
  ["groups without any total", [], [{ requests: "1" }, { requests: "2" }], "3"],
  ["one request of a million", [{ requests: "1000000" }], [{ requests: "999999" }], "-1"],
])("a total and its groups are compared: %s", async (_, totals, groups, difference) => {
  const expected = difference === undefined ? [] : [expect.objectContaining({ metric: "requests", difference })];
  expect(await reconciled(totals, groups)).toEqual(expected);
});

test("the amounts of each grouping of billing are compared with the billed total", async () => {
  const project = newProject();
  const charges = [
    { day: DAY, line_item: "a", tags: ["x"], dollars: "1.5" },
    { day: DAY, line_item: "b", tags: ["x", "y"], dollars: "-0.25" },
  ];
  const groupings = ["none", "line_item", "tags", "line_item,tags"] as const;
  await storeBills(db, project, groupings, { start: DAY, end: DAY }, charges);
  expect(await view(db, "reconciliation", project)).toEqual([]);

  const [totalId = 0] = await register(db, ...groupings.map((one) => configured(project, one, { source: "billing" })));
  const restateTotal = (amount: string | null) => store(db, totalId, [billed(DAY, "none", [[amount]])]);
  await restateTotal("2");
  expect(await view(db, "reconciliation", project)).toMatchObject(
    ["line_item,tags", "line_item", "tags"].map((grouping) => ({
      ...{ grouping, metric: "dollars", source: "billing", total: "2", sum_of_groups: "1.25", difference: "-0.75" },
    })),
  );
  await restateTotal(null);
  expect(await view(db, "reconciliation", project)).toEqual([]);
});

test("a charge that is gone is neither shown nor counted", async () => {
  const project = newProject();
  const charges = [
    { day: DAY, line_item: "a", dollars: "1.5" },
    { day: DAY, line_item: "b", dollars: "2" },
  ];
  const window = { start: DAY, end: DAY };
  await storeBills(db, project, ["none", "line_item"], window, charges);
  await storeBills(db, project, ["line_item"], window, charges.slice(0, 1));
  expect(await view(db, "cost_by_line_item", project)).toMatchObject([{ line_item: "a", amount: "1.5" }]);
  expect(await view(db, "reconciliation", project)).toMatchObject([
    { grouping: "line_item", total: "3.5", sum_of_groups: "1.5", difference: "-2.0" },
  ]);
});

test("a missing group is a difference in each metric that it had", async () => {
  const rows = await reconciled(
    [{ hours: "3", requests: "30", tokens_in: "0" }],
    [{ hours: "1", requests: "10", tokens_in: "0" }],
  );
  expect(rows).toMatchObject([
    { grouping: "endpoint", usage_date: DAY, metric: "hours", total: "3", sum_of_groups: "1", difference: "-2" },
    { source: "usage", metric: "requests", total: "30", sum_of_groups: "10", difference: "-20" },
  ]);
});

test.each(GROUPINGS.filter((grouping) => grouping !== "none"))(
  "usage by %s is compared with the total if its groups must add up to it",
  async (grouping) => {
    const rows = await reconciled([{ requests: "3" }], [{ requests: "1" }], { grouping });
    expect(rows).toHaveLength(grouping === "tags" || grouping === "feature_set" ? 0 : 1);
  },
);

test("filtered usage is never compared", async () => {
  expect(await reconciled([{ requests: "3" }], [{ requests: "1" }], { filter: DIARIZED })).toEqual([]);
});

test("a day whose groups were not read has no difference", async () => {
  const { project } = await newSeries(db, "none", { usage: { [DAY]: { requests: "1" } } });
  await register(db, configured(project, "none"), configured(project, "endpoint"));
  expect(await view(db, "reconciliation", project)).toEqual([]);
});
