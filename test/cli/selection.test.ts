// Which jobs, series and days the command line may choose, and what a mistake is answered with.

import { expect, test } from "vitest";
import {
  type BackfillOptions,
  chooseBackfill,
  chooseJobs,
  choosePeriod,
  type PeriodOptions,
  type SelectionOptions,
} from "../../src/cli/selection.ts";
import { parseConfig } from "../../src/config/config.ts";
import { smallConfig } from "./small-config.ts";

const TODAY = "2026-03-18";
const YESTERDAY = "2026-03-17";

const CONFIG = parseConfig(
  JSON.stringify(
    smallConfig("https://api.example.com", {
      exports: [
        { groupings: ["none", "tags"], filters: [{ name: "all" }, { name: "diarized", features: { diarize: true } }] },
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
      ["nightly", "none", "tags", "none", "tags"],
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

test.each<[SelectionOptions, string]>([
  [
    { job: ["nightli"] },
    '--job: "nightli" is not configured (there is "nightly", "weekly", "dateless"); did you mean "nightly"?',
  ],
  [
    { project: ["producton"] },
    '--project: "producton" is not configured (there is "production"); did you mean "production"?',
  ],
  [
    { filter: ["diarised"] },
    '--filter: "diarised" is not configured (there is "all", "diarized"); did you mean "diarized"?',
  ],
  [{ grouping: ["accessor"] }, "no export has this combination of project, grouping and filter"],
  [{ job: ["nightly"], day: ["2026-03-19"] }, "--day: 2026-03-19 has not begun; today is 2026-03-18 in UTC"],
  [{ job: ["dateless"], day: [TODAY] }, '--day: the export "dateless" has no "window", so it can\'t ask for a day'],
])("%j is refused before anything is called", (options, message) => {
  expect(() => chooseJobs(CONFIG, options, TODAY)).toThrow(expect.objectContaining({ code: "config", message }));
});

test("a configuration without exports has none to run", () => {
  expect(() => chooseJobs({ ...CONFIG, exports: [] }, {}, TODAY)).toThrow(
    'there is no export to run: add one under "exports"',
  );
});

const PERIODS: readonly (readonly [string, PeriodOptions, string, string])[] = [
  ["the last 28 complete days", {}, "2026-02-18", "2026-03-17"],
  ["28 days up to --to", { to: "2026-01-30" }, "2026-01-03", "2026-01-30"],
  ["the days from --from to yesterday", { from: "2026-03-10" }, "2026-03-10", "2026-03-17"],
  ["one day", { from: "2026-03-10", to: "2026-03-10" }, "2026-03-10", "2026-03-10"],
  ["today, which is not over", { from: TODAY, to: TODAY }, TODAY, TODAY],
  ["a leap year", { from: "2024-01-01", to: "2024-12-31" }, "2024-01-01", "2024-12-31"],
];

test.each(PERIODS)("a report can cover %s", (_, options, start, end) => {
  expect(choosePeriod(options, TODAY)).toEqual({ start, end });
});

test("a report for a period that can't be is refused, with the options to change", () => {
  expect(() => choosePeriod({ to: "2026-03-19" }, TODAY)).toThrow(
    "--to: expected 2026-03-18 or before, which is today in UTC; got 2026-03-19",
  );
});
