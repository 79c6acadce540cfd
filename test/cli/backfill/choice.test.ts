// Which ranges and exports a backfill accepts.

import { expect, test } from "vitest";
import { type BackfillOptions, chooseBackfill } from "../../../src/cli/selection.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { smallConfig } from "../small-config.ts";

const TODAY = "2026-03-18";
const YESTERDAY = "2026-03-17";

const CONFIG = parseConfig(
  JSON.stringify(
    smallConfig("https://api.example.com", {
      exports: [
        { groupings: ["none", "tags"] },
        { name: "weekly", groupings: ["tags", "model"] },
        { name: "dateless", groupings: ["method"], window: undefined },
      ],
    }),
  ),
  { source: "jobs.config.json", baseDir: "/" },
);

function choose(options: Partial<BackfillOptions>) {
  return chooseBackfill(CONFIG, { from: "2026-03-01", to: YESTERDAY, only: "missing", ...options }, TODAY);
}

test.each<[string, string, string]>([
  ["that ends today", "2026-03-01", TODAY],
  ["of the future", "2026-03-19", "2026-03-20"],
])("a range %s is refused, and the error names the newest possible day", (_, from, to) => {
  expect(() => choose({ from, to })).toThrow(
    `--to: expected 2026-03-17 or before, the newest day that is over in UTC; got ${to}`,
  );
});

test("a range that ends before it starts is refused", () => {
  expect(() => choose({ from: "2026-03-02", to: "2026-03-01" })).toThrow(
    "--from: expected 2026-03-01 or before, which is --to; got 2026-03-02",
  );
});

test.each([
  ["2016-03-09", true],
  ["2016-03-10", false],
  [YESTERDAY, false],
])("a range from %s to yesterday is too long: %s", (from, tooLong) => {
  const refusal = "--from: expected 2016-03-10 or after, as a backfill has at most 3660 days";
  if (tooLong) expect(() => choose({ from })).toThrow(refusal);
  else expect(choose({ from }).range).toEqual({ start: from, end: YESTERDAY });
});

test("exports without a window are left out, and named", () => {
  const { jobs, dateless } = choose({});
  const chosen = jobs.map(({ job, series }) => [job.name, ...series.map(({ grouping }) => grouping)]);
  expect({ chosen, dateless }).toEqual({
    chosen: [
      ["nightly", "none", "tags"],
      ["weekly", "model"],
    ],
    dateless: ["dateless"],
  });
});

test("if only exports without a window are selected, there is nothing to backfill", () => {
  expect(() => choose({ job: ["dateless"] })).toThrow(
    'nothing to backfill: only exports with a "window" can ask for days, and "dateless" has none',
  );
});

test("a name that is not configured is refused", () => {
  expect(() => choose({ job: ["nightli"] })).toThrow('--job: "nightli" is not configured');
});
