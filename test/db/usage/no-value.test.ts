// "No value" of a dimension, in every shape in which the service has sent one: from answers to the views.

import { expect, test } from "vitest";
import { registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { DIMENSIONS_OF, type Dimension, SOURCES } from "../../../src/usage/dimensions.ts";
import { normalise } from "../../../src/usage/normalise.ts";
import { testDatabase } from "../../support/database.ts";
import { sampleRow } from "../../usage/sample-request.ts";
import { configured, newProject, store, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const WINDOW = { start: DAY, end: DAY };
const SHAPES = [null, undefined, [], "", [""], [null], ["", null]];
const CASES = SOURCES.flatMap((source) => DIMENSIONS_OF[source].map((dimension) => [source, dimension] as const));

async function project(source: (typeof SOURCES)[number], dimension: Dimension) {
  const one = configured(newProject(), dimension, { source });
  const seriesId = seriesIdOf(await registerSeries(db, [one]), one.series);
  return {
    async read(rows: readonly (readonly [value: unknown, amount: number])[]) {
      const results = rows.map(([value, amount]) =>
        sampleRow(DAY, value === undefined ? {} : { [dimension]: value }, { requests: amount, dollars: amount }),
      );
      const slices = normalise({ series: one.series, window: WINDOW }, { ...WINDOW, results }, "2026-03-18");
      const { slices: stored } = await store(db, seriesId, slices, { grouping: dimension });
      return stored.map(({ decision }) => decision);
    },
    async amounts() {
      const usage = dimension === "line_item" ? "" : `usage_by_${dimension}`;
      const rows = await view(db, source === "billing" ? "cost_by_group" : usage, one.series.project);
      return rows.map((row) => [row[dimension], row.requests ?? row.amount]);
    },
  };
}

test.each(CASES)(
  "of %s by %s, whatever shape no value has from night to night, it is one group, NULL",
  async (...of) => {
    const { read, amounts } = await project(...of);
    const decisions = [];
    for (const shape of SHAPES) {
      decisions.push(
        ...(await read([
          [shape, 3],
          ["hosted", 5],
        ])),
      );
      expect(await amounts()).toEqual(expect.arrayContaining([[null, "3"]]));
      expect(await amounts()).toHaveLength(2);
    }
    expect(new Set(decisions.slice(1))).toEqual(new Set(["unchanged"]));
  },
);
