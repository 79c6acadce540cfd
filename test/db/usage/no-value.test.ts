// "No value" of a dimension, in every shape in which the service has sent one: from answers to the views.

import { expect, test } from "vitest";
import { DIMENSIONS_OF, SOURCES } from "../../../src/usage/dimensions.ts";
import { normalise } from "../../../src/usage/normalise.ts";
import { testDatabase } from "../../support/database.ts";
import { sampleRow } from "../../usage/sample-request.ts";
import { newSeries, store, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const WINDOW = { start: DAY, end: DAY };
const SHAPES = [null, undefined, [], "", [""], [null], ["", null]];
const CASES = SOURCES.flatMap((source) => DIMENSIONS_OF[source].map((dimension) => [source, dimension] as const));

test.each(CASES)(
  "of %s by %s, whatever shape no value has from night to night, it is one group, NULL",
  async (source, dimension) => {
    const { project, series, seriesId } = await newSeries(db, dimension, { source });
    const name = source === "billing" ? "cost_by_group" : `usage_by_${dimension}`;
    const decisions = [];
    for (const shape of SHAPES) {
      const row = (value: unknown, amount: number) =>
        sampleRow(DAY, value === undefined ? {} : { [dimension]: value }, { requests: amount, dollars: amount });
      const results = [row(shape, 3), row("hosted", 5)];
      const { slices } = await store(
        db,
        seriesId,
        normalise({ series, window: WINDOW }, { ...WINDOW, results }, "2026-03-18"),
      );
      decisions.push(...slices.map(({ decision }) => decision));
      const rows = (await view(db, name, project)).map((row) => [row[dimension], row.requests ?? row.amount]);
      expect(rows).toHaveLength(2);
      expect(rows).toContainEqual([null, "3"]);
    }
    expect(new Set(decisions.slice(1))).toEqual(new Set(["unchanged"]));
  },
);
