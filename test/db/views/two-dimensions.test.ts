// Usage by two dimensions: the series whose filter is one value of one dimension.

import { expect, test } from "vitest";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import type { Dimension } from "../../../src/usage/dimensions.ts";
import { type Filter, type Grouping, type Project, seenFilter } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { configured, newProject, rowOf, rowsOn, store, total, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";

type Stored = readonly [filter: Filter, grouping: Grouping, requests: Readonly<Record<string, string>>];

async function storeAll(project: Project, all: readonly Stored[]): Promise<void> {
  const ids = await registerSeries(
    db,
    all.map(([filter, grouping]) => configured(project, grouping, { filter })),
  );
  for (const [filter, grouping, requests] of all) {
    const rows = Object.entries(requests).map(([value, count]) => rowOf(value, count, null, grouping as Dimension));
    const slice = grouping === "none" ? total(DAY, requests) : rowsOn(DAY, rows);
    await store(db, seriesIdOf(ids, { project, source: "usage", grouping, filter }), [slice], { grouping });
  }
}

test("a series is shown by its filter's value and its group, and no other filter is", async () => {
  const project = newProject();
  await storeAll(project, [
    [seenFilter("accessor", "k1"), "model", { "nova-3": "3", "aura-2": "1" }],
    [seenFilter("tags", "prod"), "model", { "nova-3": "2" }],
    [{ name: "named", features: {}, dimensions: { endpoint: "listen" } }, "accessor", { k1: "3" }],
    [seenFilter("accessor", "k1"), "none", { requests: "4" }],
    [seenFilter("accessor", "k1"), "accessor", { k1: "4" }],
    [{ name: "two", features: {}, dimensions: { accessor: "k1", method: "sync" } }, "model", { "nova-3": "1" }],
    [{ name: "featured", features: { diarize: "true" }, dimensions: { accessor: "k1" } }, "model", { "nova-3": "1" }],
    [{ name: "features", features: { diarize: "true" }, dimensions: {} }, "model", { "nova-3": "1" }],
    [{ name: "all", features: {}, dimensions: {} }, "model", { "nova-3": "5" }],
  ]);
  const rows = await view(db, "usage_by_two_dimensions", project);
  const shown = rows.map((row) => [row.dimension, row.value, row.grouping, row.group_value, row.requests].join(" "));
  expect(shown.sort()).toEqual([
    "accessor k1 model aura-2 1",
    "accessor k1 model nova-3 3",
    "endpoint listen accessor k1 3",
    "tags prod model nova-3 2",
  ]);
});
