// bi.focus_usage: all usage under the column names of FOCUS, and nothing twice.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { storeListedKeys } from "../../../src/db/keys/listed-keys.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/series.ts";
import { METRICS } from "../../../src/usage/metrics.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import {
  configured,
  newProject,
  newSeries,
  rowOf,
  rowsOn,
  store,
  total,
  totalRow,
  type ViewRow,
} from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const ALL_METRICS = Object.fromEntries(METRICS.map((metric, i) => [metric, `${i + 1}.25`]));

async function rowsOf({ id }: Project): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select * from bi.focus_usage where "SubAccountId" = ${id} order by "x_UsageDate", "x_Metric", "ResourceId"
  `.execute(db);
  return rows;
}

/** By metric, with all the digits. */
async function sums({ id }: Project): Promise<Readonly<Record<string, string>>> {
  const { rows } = await sql<{ metric: string; quantity: string }>`
    select "x_Metric" as metric, trim_scale(sum("ConsumedQuantity")) as quantity from bi.focus_usage
    where "SubAccountId" = ${id} group by "x_Metric"
  `.execute(db);
  return Object.fromEntries(rows.map(({ metric, quantity }) => [metric, quantity]));
}

async function storeTotal(project: Project, numbers: Readonly<Record<string, string>>, day = DAY): Promise<void> {
  const { seriesId } = await newSeries(db, "none", { project });
  await store(db, seriesId, [total(day, numbers)], { grouping: "none" });
}

async function storeByAccessor(project: Project, requests: Readonly<Record<string, string>>, day = DAY): Promise<void> {
  const { seriesId } = await newSeries(db, "accessor", { project });
  const rows = Object.entries(requests).map(([accessor, count]) => rowOf(accessor, count, null, "accessor"));
  await store(db, seriesId, [rowsOn(day, rows)], { grouping: "accessor" });
}

test("a row is an amount with its unit, on a day from midnight to midnight in UTC, of a project and a key", async () => {
  const project = newProject();
  await storeListedKeys(db, project.id, [{ apiKeyId: "k1", comment: "the exporter", scopes: [], tags: ["b", "a"] }]);
  await storeByAccessor(project, { k1: "12.5" });
  expect(await rowsOf(project)).toEqual([
    {
      ChargePeriodStart: new Date("2026-03-17T00:00:00Z"),
      ChargePeriodEnd: new Date("2026-03-18T00:00:00Z"),
      ChargeCategory: "Usage",
      ChargeDescription: "Requests",
      ConsumedQuantity: "12.5",
      ConsumedUnit: "Requests",
      ServiceCategory: "AI and Machine Learning",
      ServiceName: "Speech processing",
      SubAccountId: project.id,
      SubAccountName: project.name,
      ResourceId: "k1",
      ResourceName: "the exporter",
      ResourceType: "API key",
      Tags: { a: true, b: true },
      x_UsageDate: DAY,
      x_Metric: "requests",
      x_Grouping: "accessor",
      x_Lineage: "k1",
      x_Finality: "final",
      x_Revision: 1,
      x_LastChangedAt: expect.any(Date),
    },
  ]);
});

test("every metric has a row with its unit, unless it is zero or was not sent", async () => {
  const project = newProject();
  await storeTotal(project, ALL_METRICS);
  await storeTotal(project, { requests: "0", hours: "0.5" }, "2026-03-18");
  const rows = await rowsOf(project);
  expect(rows.map((row) => [row.x_UsageDate, row.x_Metric, row.ConsumedQuantity, row.ConsumedUnit])).toEqual([
    [DAY, "agent_hours", "3.25", "Hours"],
    [DAY, "hours", "1.25", "Hours"],
    [DAY, "requests", "7.25", "Requests"],
    [DAY, "tokens_in", "4.25", "Tokens"],
    [DAY, "tokens_out", "5.25", "Tokens"],
    [DAY, "total_hours", "2.25", "Hours"],
    [DAY, "tts_characters", "6.25", "Characters"],
    ["2026-03-18", "hours", "0.5", "Hours"],
  ]);
});

test("the sums are those of the total, however many groupings and filters are stored", async () => {
  const project = newProject();
  const filter = { name: "diarized", features: { diarize: "true" }, dimensions: {} };
  const byGrouping = (["accessor", "model", "tags"] as const).map((grouping) => configured(project, grouping));
  const all = [configured(project, "none"), configured(project, "accessor", { filter }), ...byGrouping];
  const ids = await registerSeries(db, all);
  for (const { series } of all) {
    const { grouping } = series;
    const rows =
      grouping === "none"
        ? [totalRow({ requests: "30", hours: "0.75" })]
        : [
            rowOf("a", { requests: "10", hours: "0.25" }, null, grouping),
            rowOf("b", { requests: "20", hours: "0.5" }, null, grouping),
          ];
    await store(db, seriesIdOf(ids, series), [rowsOn(DAY, rows)], { grouping });
  }
  expect(await sums(project)).toEqual({ requests: "30", hours: "0.75" });
});

test("a day that was read by accessor is shown by accessor only, and any other day as its total", async () => {
  const project = newProject();
  const all = [configured(project, "none"), configured(project, "accessor")];
  const ids = await registerSeries(db, all);
  const [none = 0, accessor = 0] = all.map(({ series }) => seriesIdOf(ids, series));
  for (const day of ["2026-03-16", DAY]) await store(db, none, [total(day, { requests: "3" })], { grouping: "none" });
  await store(db, accessor, [rowsOn(DAY, [rowOf("k1", "3", null, "accessor")])], { grouping: "accessor" });
  await recordFailure(db, {
    seriesId: accessor,
    days: ["2026-03-16"],
    fetchNo: await nextFetchNo(db),
    reason: "down",
  });

  const rows = await rowsOf(project);
  expect(rows.map((row) => [row.x_UsageDate, row.x_Grouping, row.ResourceId, row.ResourceType])).toEqual([
    ["2026-03-16", "none", null, null],
    [DAY, "accessor", "k1", "API key"],
  ]);
});
