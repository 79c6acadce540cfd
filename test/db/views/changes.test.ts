// bi.usage_change, bi.cost_change and bi.billed_change: the status and effects of each row, which rows are final, and what can be asked
// for. changes-random.test.ts checks the amounts.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import type { Filter } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { usedKeys } from "../keys/written-ledger.ts";
import { DIARIZED, forgetAll, storeSeries } from "../reported-usage.ts";
import { storeBills } from "../stored-charges.ts";
import { storePriceBook } from "../stored-costs.ts";
import { daysBack, failOn, newProject, store, textsOf, type Usage, type ViewRow } from "../stored-usage.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);

beforeEach(() => forgetAll(db));

/** The rows of the function for the day so many days back, compared with the day before. */
const change = (name: string, day = 1, moreArguments = sql``) =>
  read(
    sql<ViewRow>`select * from ${sql.id("bi", name)}(${back(day)}::date, ${back(day)}::date ${moreArguments}) c order by part desc, c::text`,
  );

/** Hours of the model nova on the last days, the newest day last. */
const hours = (...numbers: readonly string[]): Usage =>
  Object.fromEntries(numbers.map((hours, i) => [back(numbers.length - i), [["nova", { hours }]]]));
const NOVA = { metric: "hours", model: "nova", currency: "USD", price: "0.3", from: "2020-01-01" };

test("a group of usage is new, vanished, changed or the same", async () => {
  const project = newProject();
  await storeSeries(db, [
    { project, grouping: "none", usage: { [back(2)]: { requests: "20" }, [back(1)]: { requests: "34" } } },
    {
      ...{ project, grouping: "model" },
      usage: {
        [back(2)]: { base: "5", old: "4", nova: "10", null: "1" },
        [back(1)]: { base: "5", fresh: "9", nova: "18", null: "2" },
      },
    },
  ]);
  const rows = await change("usage_change");
  expect(textsOf(rows, "grouping group_value amount_before amount_after change status").toSorted()).toEqual([
    "model base 5 5 0 same",
    "model fresh null 9 9 new",
    "model nova 10 18 8 changed",
    "model null 1 2 1 changed",
    "model old 4 null -4 vanished",
    "none null 20 34 14 changed",
  ]);
  expect(rows[0]).toMatchObject({
    ...{ project_id: project.id, project: project.name, metric: "requests", total_from: "none", is_final: true },
    ...{ days_compared: 1, days_lacking_before: 0, days_lacking_after: 0 },
  });
});

test("the total comes from a series that is still read, even if another series was read on more days", async () => {
  const project = newProject();
  await storeSeries(db, [{ project, grouping: "none", usage: hours("5", "6") }]);
  await storeSeries(db, [{ project, grouping: "model", usage: hours("6") }]);
  expect(new Set(textsOf(await change("usage_change"), "total_from"))).toEqual(new Set(["model"]));
});

test("a charge is new, vanished or changed", async () => {
  const project = newProject();
  const { rotation, keys } = await usedKeys(db, project);
  const [first = null, second = null] = keys;
  await storeBills(db, project, ["none", "line_item", "accessor"], { start: back(2), end: back(1) }, [
    { day: back(2), dollars: "1.5", line_item: "a", accessor: first },
    { day: back(2), dollars: "2", line_item: "b", accessor: "other" },
    { day: back(1), dollars: "1.75", line_item: "a", accessor: second },
    { day: back(1), dollars: "-0.25", line_item: "credit", accessor: null },
  ]);
  const rows = await change("billed_change");
  expect(textsOf(rows, "grouping group_value amount_before amount_after status").toSorted()).toEqual(
    [
      "accessor null 0 -0.25 new",
      `accessor ${rotation} 1.5 1.75 changed`,
      "accessor other 2 0 vanished",
      "line_item a 1.5 1.75 changed",
      "line_item b 2 0 vanished",
      "line_item credit 0 -0.25 new",
      "none null 3.5 1.5 changed",
    ].sort(),
  );
});

test("a change of cost is split into a volume effect and a price effect", async () => {
  await storePriceBook(
    db,
    { ...NOVA, until: back(2) },
    { ...NOVA, price: "0.5", from: back(1) },
    ...["base", "fresh", "old"].map((model) => ({ ...NOVA, model, price: "0.1" })),
  );
  const models = (...pairs: readonly (readonly [string, string])[]) =>
    pairs.map(([model, hours]) => [model, { hours }] as const);
  const usage = {
    [back(2)]: models(["nova", "10"], ["base", "3"], ["old", "10"], ["free", "1"]),
    [back(1)]: models(["nova", "30"], ["base", "7"], ["fresh", "5"], ["free", "2"]),
  };
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage }]);
  const rows = await read(sql<ViewRow>`
    select model, status, quantity_before || '>' || quantity_after as quantity, trim_scale(change) as change, trim_scale(volume_effect) as volume,
      trim_scale(price_effect) as price
    from bi.cost_change(${back(1)}::date, ${back(1)}::date) order by model
  `);
  expect(textsOf(rows, "model status quantity change volume price")).toEqual([
    "base changed 3>7 0.4 0.4 0",
    "free unpriced 1>2 null null null",
    "fresh new 0>5 0.5 0.5 0",
    // 20 hours more at 0.3, and 30 hours at 0.2 more.
    "nova changed 10>30 12 6 6",
    "old vanished 10>0 -1 -1 0",
  ]);
});

test("a cost is compared only if the series with the conditions of a price was read as well", async () => {
  await storePriceBook(db, { ...NOVA, endpoint: "listen", until: back(3) });
  const project = newProject();
  const listen: Filter = { name: "listen", features: {}, dimensions: { endpoint: "listen" } };
  const due = { start: back(4), end: back(1) };
  const [, filtered = 0] = await storeSeries(db, [
    { project, grouping: "model", due, usage: hours("10", "10", "10", "10") },
    { project, grouping: "model", due, filter: listen, usage: { [back(4)]: { nova: { hours: "10" } } } },
  ]);
  const rows = await change("cost_change", 3);
  expect(textsOf(rows, "part quantity_before quantity_after").toSorted()).toEqual([
    "days not compared 0 10",
    "days not compared 10 0",
  ]);
  const days = { days_compared: 0, days_lacking_before: 0, days_lacking_after: 1, is_final: false };
  expect(rows).toMatchObject([days, days]);

  await store(db, filtered, { [back(3)]: { nova: { hours: "10" } } });
  expect(await change("cost_change", 3)).toMatchObject([{ part: "group", status: "same", days_compared: 1 }]);
  // On later days the price no longer applies, so the filtered series is not needed.
  expect(await change("cost_change", 1)).toMatchObject([{ part: "group", status: "unpriced", days_compared: 1 }]);
});

test("a day whose later reading failed is compared without being final", async () => {
  await storePriceBook(db, NOVA);
  const project = newProject();
  const seriesIds = await storeSeries(db, [{ project, grouping: "model", windowDays: 1, usage: hours("1", "2", "3") }]);
  const finality = async () => {
    const rows = await Promise.all(["usage_change", "cost_change"].map((name) => change(name, 2)));
    return textsOf(rows.flat(), "days_compared is_final");
  };
  expect(new Set(await finality())).toEqual(new Set(["1 true"]));
  await failOn(db, seriesIds[0] ?? 0, [back(3)]);
  expect(new Set(await finality())).toEqual(new Set(["1 false"]));
});

test("each function can be limited to projects, metrics and groupings", async () => {
  await storePriceBook(db, NOVA);
  const [one, other] = [newProject(), newProject()];
  const groupings = ["none", "model", "endpoint"] as const;
  const usage = hours("1", "2");
  const series = [one, other].flatMap((project) => groupings.map((grouping) => ({ project, grouping, usage })));
  await storeSeries(db, [...series, { project: one, grouping: "method", filter: DIARIZED, usage }]);
  const charges = [2, 1].map((day) => ({ day: back(day), line_item: "a", dollars: `${day}` }));
  const asked = async (name: string, names: string, columns = "project metric grouping") =>
    textsOf(await change(name, 1, sql.raw(`, ${names}`)), columns).toSorted();
  const ofOne = `projects => array['${one.name}']`;
  expect(await asked("usage_change", ofOne)).toEqual(
    ["endpoint", "model", "none"].map((by) => `${one.name} hours ${by}`),
  );
  expect(await asked("usage_change", `${ofOne}, groupings => array['model']`)).toEqual([`${one.name} hours model`]);
  expect(await asked("usage_change", "metrics => array['requests']")).toEqual([]);
  expect(await asked("cost_change", `projects => array['${one.id}']`, "project metric")).toEqual([`${one.name} hours`]);
  for (const project of [one, other])
    await storeBills(db, project, ["none", "line_item"], { start: back(2), end: back(1) }, charges);
  const totalOfOther = `projects => array['${other.name}'], groupings => array['tags']`;
  expect(await asked("billed_change", totalOfOther, "project grouping")).toEqual([`${other.name} none`]);
});
