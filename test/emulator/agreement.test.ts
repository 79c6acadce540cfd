// The emulator shares no code with the product, so it has tables of its own: they agree with the product's.

import { expect, test } from "vitest";
import { parseBreakdownQuery } from "../../src/emulator/breakdown.ts";
import { DIMENSIONS, sumOf } from "../../src/emulator/usage.ts";
import { breakdownQuery } from "../../src/service/usage.ts";
import { dimension, USAGE_DIMENSIONS } from "../../src/usage/dimensions.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { DIALECTS } from "../../src/usage/series.ts";
import { ALL_USAGE, PROJECT } from "../usage/sample-request.ts";

test("the emulator has the product's dimensions and metrics", () => {
  expect(Object.keys(DIMENSIONS).sort()).toEqual([...USAGE_DIMENSIONS].sort());
  expect(Object.keys(sumOf([])).sort()).toEqual([...METRICS].sort());
});

test.each(USAGE_DIMENSIONS.flatMap((name) => DIALECTS.map((dialect) => [name, dialect] as const)))(
  "a grouping and a filter by %s in dialect %s are understood as such",
  (name, dialect) => {
    const isFilter = dialect === "interface" || dimension(name).in2026?.filter !== null;
    const filter = { ...ALL_USAGE, dimensions: isFilter ? { [name]: "x" } : {} };
    const series = { project: PROJECT, source: "usage", grouping: name, filter } as const;
    const parsed = parseBreakdownQuery(breakdownQuery({ series, window: undefined }, dialect), dialect);
    expect(parsed).toMatchObject({ grouping: name, dimensions: new Map(isFilter ? [[name, "x"]] : []) });
  },
);
